"""How an attempt gets its state: slots read it, once, and the driver looks at what is damaged."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from penstock.checkpoint.store import CheckpointStore
from penstock.common import Configuration, WatermarkStrategy
from penstock.datastream.connectors.file_system import FileSink
from penstock.datastream.connectors.number_seq import NumberSequenceSource
from penstock.datastream.functions import MapFunction, RuntimeContext
from penstock.errors import JobFailedError, StorageError
from penstock.jobmanager import job_master
from penstock.state.hashmap import HashMapBackend
from penstock.testing import local_environment
from penstock.testing.local_environment import LocalEnvironment

NUMBERS = 2_000
OPENED: list[str] = []


class PassOn(MapFunction):
    """Raises at a number if asked to, once in this process."""

    failed: set[int] = set()

    def __init__(self, fail_at: int | None) -> None:
        self.fail_at = fail_at

    def open(self, runtime_context: RuntimeContext) -> None:
        OPENED.append("open")

    def map(self, value: int) -> int:
        if value == self.fail_at and value not in self.failed:
            self.failed.add(value)
            raise RuntimeError("out of luck")
        return value


def sums(env: LocalEnvironment, fail_at: int | None = None) -> Any:
    """Sums of the numbers by their last two digits, into files."""
    source = env.from_source(
        NumberSequenceSource(0, NUMBERS - 1), WatermarkStrategy.no_watermarks(), "numbers"
    )
    keyed = source.map(PassOn(fail_at)).key_by(lambda n: n % 100)
    stream = keyed.reduce(lambda a, b: a + b).map(str)
    stream.sink_to(FileSink.for_row_format(f"{env.storage}/out").build())
    return env.execute("sums")


def expected() -> list[int]:
    totals: Counter[int] = Counter()
    lines = []
    for number in range(NUMBERS):
        totals[number % 100] += number
        lines.append(totals[number % 100])
    return sorted(lines)


def lines(env: LocalEnvironment) -> list[int]:
    files = env.filesystem.files
    visible = [path for path in files if path.startswith("/out/part-")]
    return sorted(int(line) for path in visible for line in files[path].decode().split())


@pytest.fixture
def env() -> Iterator[LocalEnvironment]:
    """Two slots; a job that fails restarts once."""
    below = "execution.checkpointing."
    settings = {
        below + "interval": "10 ms",
        below + "num-retained": "3",
        "restart-strategy.type": "fixed-delay",
        "restart-strategy.fixed-delay.attempts": "1",
        "pipeline.jobid": "sums",
    }
    PassOn.failed.clear()
    with local_environment(seed=5, configuration=Configuration.from_dict(settings)) as env:
        env._configuration.set_string(below + "dir", f"{env.storage}/checkpoints")
        env.set_parallelism(2)
        yield env


@pytest.fixture
def failed(env: LocalEnvironment) -> LocalEnvironment:
    """A job failed in the middle; its checkpoints are there."""
    env._configuration.set_string("restart-strategy.type", "none")
    with pytest.raises(JobFailedError):
        sums(env, fail_at=1_500)
    return env


def store_of(env: LocalEnvironment) -> CheckpointStore:
    return CheckpointStore(f"{env.storage}/checkpoints", "sums")


def newest_segment(env: LocalEnvironment) -> tuple[int, str]:
    """The newest checkpoint, and the path of a segment that only it has."""
    manifests, _ = store_of(env)._manifests()
    newest = max(manifests)
    own = manifests[newest].segment_paths() - manifests[newest - 1].segment_paths()
    return newest, f"/checkpoints/sums/{min(own)}"


# --- who reads what ---------------------------------------------------------------------------


@pytest.fixture
def read(env: LocalEnvironment) -> Counter[str]:
    """Bytes that were read, by the path of the file."""
    counted: Counter[str] = Counter()
    fs = env.filesystem
    whole, part = fs.read, fs.read_part

    def read(path: str) -> bytes:
        data = whole(path)
        counted[path] += len(data)
        return data

    def read_part(path: str, start: int, size: int) -> bytes:
        before = counted[path]
        data = part(path, start, size)
        counted[path] = before + len(data)
        return data

    fs.read, fs.read_part = read, read_part  # type: ignore[method-assign]
    return counted


def segments(counted: Counter[str]) -> Counter[str]:
    return Counter({path: size for path, size in counted.items() if "/shared/" in path})


def sizes(env: LocalEnvironment) -> dict[str, int]:
    """The bytes of each segment of the newest checkpoint, by its path."""
    manifests, _ = store_of(env)._manifests()
    handles = manifests[max(manifests)].segments()
    return {f"/checkpoints/sums/{handle.path}": handle.size for handle in handles}


def test_a_start_reads_each_byte_of_the_state_once(
    failed: LocalEnvironment, read: Counter[str]
) -> None:
    state = sizes(failed)
    read.clear()
    seen: list[Counter[str]] = []
    settle = job_master.settle_start

    def settled(*args: Any) -> None:
        seen.append(segments(read))
        settle(*args)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(job_master, "settle_start", settled)
        sums(failed)
    assert len(state) > 1 and seen == [Counter(state)]
    assert lines(failed) == expected()


def test_a_restart_in_place_reads_each_byte_of_the_state_once(
    env: LocalEnvironment, read: Counter[str]
) -> None:
    seen: list[Counter[str]] = []
    known: list[Counter[str]] = []
    begin, settle = job_master.find_start, job_master.settle_start

    def found(*args: Any) -> Any:
        read.clear()
        start = begin(*args)
        handles = start.metadata.segments() if start.metadata is not None else []
        known.append(Counter({f"/checkpoints/sums/{h.path}": h.size for h in handles}))
        return start

    def settled(*args: Any) -> None:
        seen.append(segments(read))
        settle(*args)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(job_master, "find_start", found)
        patch.setattr(job_master, "settle_start", settled)
        sums(env, fail_at=1_500)
    assert env.simulation.master.progress().restarts == 1
    assert known[1] and seen == known
    assert lines(env) == expected()


def test_a_job_that_fails_or_is_cancelled_reads_no_state(
    failed: LocalEnvironment, read: Counter[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its last output is settled by manifests alone."""
    PassOn.failed.clear()
    ended: list[Counter[str]] = []
    settle = job_master.settle

    def noted(*args: Any) -> None:
        read.clear()
        settle(*args)
        ended.append(segments(read))

    monkeypatch.setattr(job_master, "settle", noted)
    with pytest.raises(JobFailedError):
        sums(failed, fail_at=1_900)
    assert ended == [Counter()]


def test_a_savepoint_to_begin_with_is_read_once_to_be_copied(
    failed: LocalEnvironment, read: Counter[str]
) -> None:
    newest, _ = newest_segment(failed)
    path = f"{failed.storage}/checkpoints/sums/chk-{newest}"
    state = sizes(failed)
    failed._configuration.set_string("pipeline.jobid", "another")
    failed._configuration.set_string("execution.state-recovery.path", path)
    read.clear()
    sums(failed)
    assert {p: size for p, size in segments(read).items() if "/sums/" in p} == state
    assert lines(failed) == expected()


# --- the order of a start ---------------------------------------------------------------------


def test_nothing_is_opened_before_all_is_restored_and_settled(
    failed: LocalEnvironment, monkeypatch: pytest.MonkeyPatch
) -> None:
    OPENED.clear()
    restore, settle = HashMapBackend.restore, job_master.settle_start

    def restored(self: Any, blocks: Any) -> None:
        OPENED.append("restore")
        restore(self, blocks)

    def settled(*args: Any) -> None:
        OPENED.append("settle")
        settle(*args)

    monkeypatch.setattr(HashMapBackend, "restore", restored)
    monkeypatch.setattr(job_master, "settle_start", settled)
    sums(failed)
    order = list(dict.fromkeys(OPENED))
    assert order == ["restore", "settle", "open"]
    assert Counter(OPENED)["settle"] == 1 and Counter(OPENED)["open"] == 2


# --- damage -----------------------------------------------------------------------------------


def alter(env: LocalEnvironment, path: str) -> None:
    env.filesystem.files[path] = alter_first_bit(env.filesystem.files[path])


def settled_with(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The checkpoints whose output was settled to begin with."""
    chosen: list[int] = []
    settle = job_master.settle_start

    def settled(job: Any, commits: Any, metadata: Any, struck: Any) -> None:
        chosen.append(metadata.checkpoint)
        settle(job, commits, metadata, struck)

    monkeypatch.setattr(job_master, "settle_start", settled)
    return chosen


def test_damage_that_slots_find_is_known_before_anything_is_committed(
    failed: LocalEnvironment, monkeypatch: pytest.MonkeyPatch
) -> None:
    newest, path = newest_segment(failed)
    alter(failed, path)
    chosen = settled_with(monkeypatch)
    sums(failed)
    master = failed.simulation.master
    assert len(chosen) == 1 and chosen[0] < newest
    [damage, goes_on] = master.notes
    assert damage.startswith(f"checkpoint {newest} cannot be used: shared/")
    assert damage.endswith(" was altered: its checksum does not match")
    assert goes_on.startswith(f"the job goes on from checkpoint {chosen[0]}; output that a later")
    assert master.progress().restarts == 0, "that is no failure"
    assert set(lines(failed)) == set(expected())


def test_when_all_are_damaged_the_job_does_not_begin_anew(failed: LocalEnvironment) -> None:
    manifests, _ = store_of(failed)._manifests()
    for path in {path for found in manifests.values() for path in found.segment_paths()}:
        alter(failed, f"/checkpoints/sums/{path}")
    before = lines(failed)
    with pytest.raises(JobFailedError, match="no checkpoint is left to restore from: checkpoint"):
        sums(failed)
    assert lines(failed) == before


def alter_first_bit(data: bytes) -> bytes:
    return bytes([data[0] ^ 1]) + data[1:]


def no_answer(data: bytes) -> bytes:
    raise StorageError("cannot read it: timed out")


def answer(env: LocalEnvironment, path: str, *ways: Callable[[bytes], bytes]) -> list[Any]:
    """Whoever reads `path` is answered in the first of these ways, then in the second, ..."""
    left, read = list(ways), env.filesystem.read

    def answered(asked: str) -> bytes:
        data = read(asked)
        return left.pop(0)(data) if asked == path and left else data

    env.filesystem.read = answered  # type: ignore[method-assign]
    return left


@pytest.mark.parametrize(
    "ways",
    [
        pytest.param([alter_first_bit], id="only a slot sees damage"),
        pytest.param([no_answer], id="a slot gets no answer"),
        pytest.param([alter_first_bit, no_answer], id="the driver that looks gets no answer"),
    ],
)
def test_what_is_not_confirmed_to_be_damage_is_an_ordinary_failure(
    failed: LocalEnvironment,
    monkeypatch: pytest.MonkeyPatch,
    ways: list[Callable[[bytes], bytes]],
) -> None:
    """An older checkpoint would repeat what the newer one has committed."""
    failed._configuration.set_string("restart-strategy.type", "fixed-delay")
    newest, path = newest_segment(failed)
    left = answer(failed, path, *ways)
    chosen = settled_with(monkeypatch)
    sums(failed)
    assert left == [] and chosen == [newest]
    assert failed.simulation.master.notes == []
    assert failed.simulation.master.progress().restarts == 1
    assert lines(failed) == expected()
