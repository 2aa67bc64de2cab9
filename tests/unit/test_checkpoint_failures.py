"""Storage that is full, gone, or shared by mistake: what a job does about it."""

from __future__ import annotations

import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from patience import PATIENCE

from penstock.checkpoint.store import CheckpointStore
from penstock.common import Configuration, WatermarkStrategy
from penstock.common.listening import Listening
from penstock.datastream.connectors.file_system import FileSink
from penstock.datastream.connectors.number_seq import NumberSequenceSource
from penstock.errors import (
    CheckpointDirectoryError,
    JobFailedError,
    ProgramError,
    StorageError,
)
from penstock.jobmanager.dispatcher import Dispatcher
from penstock.jobmanager.resource_manager import ResourceManager
from penstock.testing import local_environment
from penstock.testing.local_environment import LocalEnvironment

BELOW = "execution.checkpointing."


def counting(env: LocalEnvironment) -> Any:
    """A job with state that runs until it is cancelled."""
    env._configuration.set_string(BELOW + "dir", f"{env.storage}/checkpoints")
    source = NumberSequenceSource(0, 10**12)
    stream = env.from_source(source, WatermarkStrategy.no_watermarks(), "numbers")
    stream.key_by(lambda n: n % 3).reduce(lambda a, b: a + b).filter(lambda _: False).print()
    return env.execute_async("counting")


def wait_for(job: Any, holds: Callable[[Any], bool]) -> Any:
    while not holds(job.progress()):
        assert not job.get_job_execution_result().done(), "it ended before that"
    return job.progress()


@pytest.mark.parametrize("what", ["", "/_metadata", "/shared/"])
def test_a_full_disk_fails_checkpoints_and_not_the_job(what: str) -> None:
    configuration = Configuration.from_dict({BELOW + "interval": "10 ms"})
    with local_environment(seed=3, configuration=configuration) as env:
        job = counting(env)
        wait_for(job, lambda now: now.completed_checkpoints >= 2)
        create, full = env.filesystem.create, threading.Event()

        def refuse(path: str, *parts: bytes) -> bool:
            if full.is_set() and what in path:
                raise StorageError(f"cannot create {path}: No space left on device")
            return create(path, *parts)

        env.filesystem.create = refuse  # type: ignore[method-assign]
        full.set()
        before = wait_for(job, lambda now: now.failed_checkpoints >= 3)
        reasons = [record.reason or "" for record in before.checkpoints]
        assert any("No space left on device" in reason for reason in reasons)
        full.clear()
        done = before.completed_checkpoints
        after = wait_for(job, lambda now: now.completed_checkpoints >= done + 3)
        assert after.restarts == 0, "the job went on"
        newest, damaged = env.simulation.job.store.newest()  # type: ignore[union-attr]
        assert newest is not None and damaged == []
        job.cancel().result(PATIENCE)
        left = [path for path in env.filesystem.files if "/checkpoints/" in path]
        assert left == [], "also what nobody knew of is deleted"


_LIMITED = """
import resource, signal, sys
from penstock.checkpoint.store import CheckpointStore
from penstock.errors import StorageError

signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, 100_000))
store = CheckpointStore(sys.argv[1], "job")
store.prepare()
store.write_segment("small", bytes(1_000))
try:
    store.write_segment("large", bytes(1_000_000))
except StorageError as error:
    print(error)
store.write_segment("large", bytes(10_000))
"""


def test_a_file_that_does_not_fit_leaves_nothing_half(tmp_path: Path) -> None:
    """On a real file system that refuses in the middle of a write."""
    command = [sys.executable, "-c", _LIMITED, str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout == f"cannot create {tmp_path}/job/shared/large: File too large\n"
    sizes = {path.name: path.stat().st_size for path in tmp_path.rglob("*") if path.is_file()}
    assert sizes == {"small": 1_000, "large": 10_000}


def test_storage_that_is_full_at_the_start_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    configuration = Configuration.from_dict({BELOW + "interval": "10 ms"})
    with local_environment(configuration=configuration) as env:

        def refuse(path: str, *parts: bytes) -> bool:
            raise StorageError(f"cannot create {path}: No space left on device")

        env.filesystem.create = refuse  # type: ignore[method-assign]
        with pytest.raises(CheckpointDirectoryError, match="No space left on device; choose"):
            counting(env)


def test_a_clock_that_goes_back_stops_no_checkpoint() -> None:
    configuration = Configuration.from_dict({BELOW + "interval": "1 s", BELOW + "timeout": "30 s"})
    with local_environment(seed=3, configuration=configuration) as env:
        job = counting(env)
        before = wait_for(job, lambda now: now.completed_checkpoints >= 2)
        clock = env.simulation.clock
        clock.set_back_ms, then = 3_600_000, clock.now
        more = before.completed_checkpoints + 5
        after = wait_for(job, lambda now: now.completed_checkpoints >= more)
        assert clock.now - then < 60_000, "deadlines do not wait for the hour to pass again"
        assert (after.restarts, after.failed_checkpoints) == (0, 0)
        job.cancel().result(PATIENCE)


# --- one job id, two jobs ---------------------------------------------------------------------


class _NoCluster:
    """Never starts a slot."""

    def check_capacity(self, slots: int) -> None:
        threading.Event().wait()

    def launch(self, *args: Any) -> Any:
        raise AssertionError("nothing is launched")

    def listening(self) -> Listening:
        return Listening("127.0.0.1")


class _NoListener:
    def deliver(self, uid: str, subtask: int, values: list[Any]) -> None: ...

    def backlog(self) -> int:
        return 0

    def flush(self, timeout_s: float | None = None) -> None: ...


def test_two_jobs_with_one_id_in_one_session_the_second_is_refused(tmp_path: Path) -> None:
    with local_environment() as env:
        env._configuration.set_string(BELOW + "interval", "1 s")
        env._configuration.set_string(BELOW + "dir", str(tmp_path))
        env.from_collection([1]).print()
        job = env._assemble("one", "the-id")
    dispatcher = Dispatcher(ResourceManager(_NoCluster(), lambda *args: None, lambda *args: None))
    runner = dispatcher.submit(job, _NoListener())
    with pytest.raises(ProgramError, match="a job with id the-id is already running here"):
        dispatcher.submit(job, _NoListener())
    store = runner.job.store
    assert store is not None
    store.check_current()
    assert CheckpointStore(str(tmp_path), "the-id").claim().generation == 2
    runner.cancel()
    assert runner.join(PATIENCE)


# --- the next start of the same id ------------------------------------------------------------


def sums(env: LocalEnvironment, numbers: int, fail_at: int | None = None) -> None:
    """The running sum of 0 .. numbers-1 into files; raises at a number if asked to."""

    def pass_on(n: int) -> int:
        if n == fail_at:
            raise RuntimeError("out of luck")
        return n

    source = env.from_source(
        NumberSequenceSource(0, numbers - 1), WatermarkStrategy.no_watermarks(), "numbers"
    )
    stream = source.map(pass_on).key_by(lambda _: 0).reduce(lambda a, b: a + b).map(str)
    stream.sink_to(FileSink.for_row_format(f"{env.storage}/out").build())
    env.execute("sums")


def settings(**more: str) -> Configuration:
    values = {"interval": "10 ms", "num-retained": "3", **more}
    configuration = Configuration.from_dict({BELOW + key: value for key, value in values.items()})
    configuration.set_string("restart-strategy", "none")
    configuration.set_string("pipeline.jobid", "sums")
    return configuration


def lines(env: LocalEnvironment) -> list[int]:
    files = env.filesystem.files
    visible = [path for path in files if path.startswith("/out/part-")]
    return sorted(int(line) for path in visible for line in files[path].decode().split())


EXPECTED = [n * (n + 1) // 2 for n in range(3_000)]


@pytest.fixture
def failed_once() -> Iterator[LocalEnvironment]:
    """A job failed in the middle; its checkpoints are there."""
    with local_environment(seed=5, configuration=settings()) as env:
        env._configuration.set_string(BELOW + "dir", f"{env.storage}/checkpoints")
        with pytest.raises(JobFailedError):
            sums(env, 3_000, fail_at=2_500)
        yield env


def checkpoints_of(env: LocalEnvironment) -> list[int]:
    return CheckpointStore(f"{env.storage}/checkpoints", "sums").whole()


def test_the_next_start_of_an_id_goes_on_without_being_told(failed_once: LocalEnvironment) -> None:
    kept = checkpoints_of(failed_once)
    assert len(kept) == 3
    sums(failed_once, 3_000)
    assert failed_once.simulation.restored, "from a checkpoint"
    assert lines(failed_once) == EXPECTED, "every sum once"
    left = [path for path in failed_once.filesystem.files if path.startswith("/checkpoints/")]
    assert left == ["/checkpoints/sums/generation-3"], "a finished job keeps none"
    sums(failed_once, 3_000)
    assert not failed_once.simulation.restored, "the id begins anew"
    assert lines(failed_once) == sorted(EXPECTED * 2), "beside the files of before"


def test_a_job_begins_with_any_retained_checkpoint(failed_once: LocalEnvironment) -> None:
    oldest = checkpoints_of(failed_once)[0]
    path = f"{failed_once.storage}/checkpoints/sums/chk-{oldest}"
    committed = set(lines(failed_once))
    failed_once._configuration.set_string("pipeline.jobid", "another")
    failed_once._configuration.set_string("execution.state-recovery.path", path)
    sums(failed_once, 3_000)
    assert failed_once.simulation.restored
    assert set(lines(failed_once)) == set(EXPECTED)
    assert set(lines(failed_once)) > committed


def test_checkpoints_of_its_own_go_before_a_path(failed_once: LocalEnvironment) -> None:
    oldest = checkpoints_of(failed_once)[0]
    path = f"{failed_once.storage}/checkpoints/sums/chk-{oldest}"
    failed_once._configuration.set_string("execution.state-recovery.path", path)
    sums(failed_once, 3_000)
    assert lines(failed_once) == EXPECTED, "going back would have doubled some"
    told = failed_once.simulation.master.notes
    assert told == [f"job sums has checkpoints of its own, so {path} is not used"]


@pytest.fixture
def began_with(failed_once: LocalEnvironment) -> str:
    """Another job began with this checkpoint, went on, and failed; so would the next start."""
    first, *_ = checkpoints_of(failed_once)
    path = f"{failed_once.storage}/checkpoints/sums/chk-{first}"
    failed_once._configuration.set_string("pipeline.jobid", "another")
    failed_once._configuration.set_string("execution.state-recovery.path", path)
    with pytest.raises(JobFailedError, match="out of luck"):
        sums(failed_once, 3_000, fail_at=2_900)
    return path


@pytest.mark.parametrize("spelled", ["", "/", "/_metadata"])
def test_a_start_with_the_same_path_goes_on(
    failed_once: LocalEnvironment, began_with: str, spelled: str
) -> None:
    failed_once._configuration.set_string("execution.state-recovery.path", began_with + spelled)
    sums(failed_once, 3_000)
    assert failed_once.simulation.master.notes == []
    assert set(lines(failed_once)) == set(EXPECTED)


def test_a_start_with_another_path_is_refused_and_says_what_to_do(
    failed_once: LocalEnvironment, began_with: str
) -> None:
    *_, last = checkpoints_of(failed_once)
    path = f"{failed_once.storage}/checkpoints/sums/chk-{last}"
    before = dict(failed_once.filesystem.files)
    for _ in range(2):
        failed_once._configuration.set_string("execution.state-recovery.path", path)
        with pytest.raises(JobFailedError) as failed:
            sums(failed_once, 3_000)
        told = str(failed.value)
        assert path in told and began_with in told and "--job-id" in told
        names = [name for name in failed_once.filesystem.files if "/generation-" not in name]
        assert names == [name for name in before if "/generation-" not in name]
        # Going on without a path does not make anybody forget where the job began.
        failed_once._configuration.remove_config("execution.state-recovery.path")
        with pytest.raises(JobFailedError, match="out of luck"):
            sums(failed_once, 3_000, fail_at=2_950)
        before = dict(failed_once.filesystem.files)
    sums(failed_once, 3_000)
    assert set(lines(failed_once)) == set(EXPECTED)


def test_another_state_backend_is_refused_and_the_same_goes_on(
    failed_once: LocalEnvironment,
) -> None:
    failed_once._configuration.set_string("state.backend.type", "rocksdb")
    with pytest.raises(JobFailedError) as failed:
        sums(failed_once, 3_000)
    expected = "written on the state backend 'hashmap' and the job runs on 'rocksdb'"
    assert expected in str(failed.value.__cause__ or failed.value)
    failed_once._configuration.set_string("state.backend.type", "hashmap")
    sums(failed_once, 3_000)
    assert lines(failed_once) == EXPECTED, "nothing was lost by the attempt"


@pytest.mark.parametrize("damage", ["flipped bit", "missing segment", "empty manifest"])
def test_damage_is_told_and_the_one_before_is_used(
    failed_once: LocalEnvironment, damage: str
) -> None:
    files, newest = failed_once.filesystem.files, checkpoints_of(failed_once)[-1]
    store = CheckpointStore(f"{failed_once.storage}/checkpoints", "sums")
    if damage == "empty manifest":
        files[f"/checkpoints/sums/chk-{newest}/_metadata"] = b""
    else:
        manifests, _ = store._manifests()
        [last] = manifests[newest].segment_paths() - manifests[newest - 1].segment_paths()
        data = files.pop(f"/checkpoints/sums/{last}")
        if damage == "flipped bit":
            files[f"/checkpoints/sums/{last}"] = bytes([data[0] ^ 1]) + data[1:]
    sums(failed_once, 3_000)
    notes = failed_once.simulation.master.notes
    assert notes[0].startswith(f"checkpoint {newest} cannot be used: ")
    assert notes[1].startswith("the job goes on from checkpoint ")
    assert set(lines(failed_once)) == set(EXPECTED)


def test_when_no_checkpoint_is_whole_the_job_does_not_begin_anew(
    failed_once: LocalEnvironment,
) -> None:
    for checkpoint in checkpoints_of(failed_once):
        failed_once.filesystem.files[f"/checkpoints/sums/chk-{checkpoint}/_metadata"] = b""
    before = lines(failed_once)
    with pytest.raises(JobFailedError, match="no checkpoint is left to restore from"):
        sums(failed_once, 3_000)
    assert lines(failed_once) == before


def test_a_checkpoint_of_another_program_is_refused(failed_once: LocalEnvironment) -> None:
    failed_once.from_collection([1]).map(lambda n: n).print()
    with pytest.raises(JobFailedError, match="does not fit the program"):
        failed_once.execute("another")
    assert len(checkpoints_of(failed_once)) == 3
