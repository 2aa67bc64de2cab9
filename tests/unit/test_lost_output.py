"""A server loses output that a checkpoint covers: the job goes back, goes on, or stops once."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
from patience import PATIENCE

from penstock.checkpoint.metadata import CheckpointMetadata
from penstock.checkpoint.settings import CheckpointSettings, LostOutput
from penstock.checkpoint.store import CheckpointStore
from penstock.common import Configuration, WatermarkStrategy
from penstock.common.plain import Plain
from penstock.connectors.sink import Committer, CommitterContext, Sink, SinkWriter, WriterContext
from penstock.datastream import DataStream
from penstock.datastream.connectors.number_seq import NumberSequenceSource
from penstock.errors import (
    JobFailedError,
    LostOutputError,
    SinkError,
    StorageError,
    SupersededError,
)
from penstock.jobmanager.committing import Committables
from penstock.jobmanager.lost_output import WayOut, way_out, without
from penstock.jobmanager.recovery import settle_start
from penstock.testing import local_environment

BELOW = "execution.checkpointing."
NUMBERS = 4_000


# --- the decision -----------------------------------------------------------------------------


def older(*covered: Plain) -> CheckpointMetadata:
    return CheckpointMetadata("job", 4, 1, 0, {}, {}, {"sink": covered})


@pytest.mark.parametrize(
    ("choice", "visible", "before", "way"),
    [
        (LostOutput.STOP, (), older(), WayOut.GO_BACK),
        (LostOutput.STOP, ("a",), older("a"), WayOut.GO_BACK),
        (LostOutput.STOP, ("a", "b"), older("a"), WayOut.STOP),
        (LostOutput.STOP, (), None, WayOut.STOP),
        (LostOutput.SKIP, ("a",), older(), WayOut.SKIP),
        (LostOutput.SKIP, (), None, WayOut.SKIP),
        (LostOutput.REPEAT, ("a",), older(), WayOut.GO_BACK),
        (LostOutput.REPEAT, ("a",), None, WayOut.STOP),
    ],
)
def test_the_way_out(
    choice: LostOutput, visible: tuple[str, ...], before: CheckpointMetadata | None, way: WayOut
) -> None:
    assert way_out(choice, LostOutputError("lost", ["x"], visible), before) is way


def test_what_is_left_without_the_lost() -> None:
    covered = {"one": ({"id": 1}, {"id": 2}), "two": ({"id": 1},)}
    assert without(covered, [{"id": 1}]) == {"one": ({"id": 2},), "two": ()}


# --- settling what a start point covers ---------------------------------------------------------


class Loses:
    """Committers that have lost what they are to commit."""

    def __init__(self, error: LostOutputError) -> None:
        self.meanwhile: Callable[[], object] = lambda: None
        self._error = error

    def known(self, committables: Committables) -> Committables:
        return committables

    def commit(self, committables: Committables) -> None:
        self.meanwhile()
        raise self._error


@pytest.fixture
def store(tmp_path: Path) -> CheckpointStore:
    """With checkpoints 1, 2 and 3, which cover a, b and c; the next covers the one before too."""
    store = CheckpointStore(str(tmp_path), "job").claim()
    for checkpoint, covered in ((1, "a"), (2, "ab"), (3, "bc")):
        metadata = CheckpointMetadata("job", checkpoint, 1, 0, {}, {}, {"sink": tuple(covered)})
        assert store.complete(metadata)
    return store


def settle(
    store: CheckpointStore,
    commits: Loses,
    struck: Mapping[int, str] | None = None,
    choice: LostOutput = LostOutput.STOP,
) -> None:
    newest, _ = store.newest()
    job: Any = SimpleNamespace(store=store, checkpoints=CheckpointSettings(lost_output=choice))
    settle_start(job, cast(Any, commits), newest, struck or {})


def test_a_driver_that_was_replaced_withdraws_nothing(store: CheckpointStore) -> None:
    """The other one has committed and cleared up: to this one that looks like a loss."""
    commits = Loses(LostOutputError("lost", ["c"]))
    others = []
    commits.meanwhile = lambda: others.append(CheckpointStore(store.directory, "job").claim())
    with pytest.raises(SupersededError):
        settle(store, commits)
    [other] = others
    newest, _ = other.newest()
    assert newest is not None and newest.checkpoint == 3


def test_the_job_does_not_go_back_to_a_checkpoint_that_is_damaged(store: CheckpointStore) -> None:
    commits = Loses(LostOutputError("lost", ["c"], ["b"]))
    with pytest.raises(LostOutputError, match="or to repeat, to go on from checkpoint 1"):
        settle(store, commits, {2: "damaged"})
    with pytest.raises(SinkError, match="goes on from checkpoint 2"):
        settle(store, commits)


def test_a_sink_must_say_what_to_skip(store: CheckpointStore) -> None:
    with pytest.raises(SinkError, match="lost; the sink does not say what to skip"):
        settle(store, Loses(LostOutputError("lost")), choice=LostOutput.SKIP)


# --- in a job ---------------------------------------------------------------------------------


class Server:
    """Where sinks write: what is prepared, what is committed, what it loses."""

    def __init__(self) -> None:
        self.prepared: dict[str, list[int]] = {}
        self.committed: dict[str, list[int]] = {}
        self.loses: Callable[[str], bool] = lambda name: False
        self.vouches = True

    def prepare(self, values: list[int]) -> str:
        name = f"{len(self.prepared) + 1}"
        self.prepared[name] = values
        return name

    def commit(self, names: list[str]) -> None:
        lost = [name for name in names if name not in self.committed and self.loses(name)]
        if lost:
            visible = [name for name in names if name in self.committed]
            raise LostOutputError(f"transactions {lost} are gone", lost, visible)
        for name in names:
            self.committed[name] = self.prepared[name]

    def counts(self) -> Counter[int]:
        return Counter(value for values in self.committed.values() for value in values)


SERVERS: list[Server] = []
"""The one of the running test: sinks are pickled and find it here."""


class ServerSink(Sink):
    def create_writer(self, context: WriterContext) -> SinkWriter:
        return ServerWriter()

    def create_committer(self, context: CommitterContext) -> Committer:
        return ServerCommitter()


class ServerWriter(SinkWriter):
    def __init__(self) -> None:
        self.values: list[int] = []

    def write(self, value: int) -> None:
        self.values.append(value)

    def prepare_commit(self) -> Callable[[], list[Plain]]:
        values, self.values = self.values, []
        return lambda: [SERVERS[-1].prepare(values)] if values else []

    def check_prepared(self, committables: list[Plain], for_ms: int) -> None:
        if not SERVERS[-1].vouches:
            raise SinkError(f"{len(committables)} transactions time out within {for_ms} ms")


class ServerCommitter(Committer):
    def commit(self, committables: list[Plain]) -> None:
        SERVERS[-1].commit(committables)

    def abort_others(self, keep: list[Plain]) -> None:
        pass


@pytest.fixture
def server() -> Iterator[Server]:
    made = Server()
    SERVERS.append(made)
    yield made
    SERVERS.remove(made)


@contextmanager
def writing(**settings: str) -> Iterator[DataStream]:
    """A stream of numbers that are written, each once."""
    values = {
        BELOW + "interval": "10 ms",
        "restart-strategy.type": "fixed-delay",
        "restart-strategy.fixed-delay.attempts": "3",
        "restart-strategy.fixed-delay.delay": "1 ms",
        **{BELOW + key: value for key, value in settings.items()},
    }
    with local_environment(seed=3, configuration=Configuration.from_dict(values)) as env:
        env._configuration.set_string(BELOW + "dir", f"{env.storage}/checkpoints")
        env.set_parallelism(2)
        source = NumberSequenceSource(0, NUMBERS - 1)
        stream = env.from_source(source, WatermarkStrategy.no_watermarks(), "numbers")
        stream.sink_to(ServerSink()).uid("sink")
        yield stream


def run(**settings: str) -> Any:
    """Let a job write all numbers once; its last progress."""
    with writing(**settings) as stream:
        job = stream.get_execution_environment().execute_async("writes")
        try:
            job.get_job_execution_result().result(PATIENCE)
        finally:
            progress = job.progress()
        return progress


def lose_all(server: Server) -> set[str]:
    """The third and later transactions are lost once, before any of their checkpoint is there."""
    gone: set[str] = set()

    def loses(name: str) -> bool:
        if len(server.committed) >= 2 and not gone:
            # All that are prepared and not committed: those of the next checkpoint.
            gone.update(server.prepared.keys() - server.committed.keys())
        return name in gone

    server.loses = loses
    return gone


def test_nothing_visible_goes_back_and_every_record_is_there_once(server: Server) -> None:
    gone = lose_all(server)
    progress = run()
    assert gone
    assert progress.restarts >= 1
    assert server.counts() == Counter(range(NUMBERS))


def test_what_the_client_was_given_does_not_come_again_when_the_job_goes_back(
    server: Server,
) -> None:
    gone = lose_all(server)
    with writing() as stream:
        assert Counter(stream.execute_and_collect()) == Counter(range(NUMBERS))
    assert gone
    assert server.counts() == Counter(range(NUMBERS))


def lose_half(server: Server) -> Callable[[str], bool]:
    """Of a checkpoint with two transactions the second is lost after the first is committed."""
    gone: set[str] = set()
    commit = server.commit

    def commit_one_by_one(names: list[str]) -> None:
        new = [name for name in names if name not in server.committed]
        if len(server.committed) >= 2 and len(new) == 2 and not gone:
            commit(new[:1])
            gone.add(new[1])
        commit(names)

    server.commit = commit_one_by_one  # type: ignore[method-assign]
    server.loses = lambda name: name in gone
    return lambda name: name in gone


def test_half_of_it_visible_stops_the_job_once_and_names_the_choice(server: Server) -> None:
    lose_half(server)
    with pytest.raises(JobFailedError) as failed:
        run()
    message = str(failed.value)
    assert re.search(r"transactions \['\d+'\] are gone; checkpoint \d+ counts them", message)
    assert "set execution.checkpointing.lost-output to skip" in message
    assert re.search(r"or to repeat, to go on from checkpoint \d+", message)


def test_skip_goes_on_without_the_lost_records(server: Server) -> None:
    gone = lose_half(server)
    run(**{"lost-output": "skip"})
    [lost] = [name for name in server.prepared if gone(name)]
    assert server.prepared[lost]
    left = Counter(range(NUMBERS))
    left.subtract(server.prepared[lost])
    assert server.counts() == +left


def test_repeat_goes_back_and_what_was_committed_comes_again(server: Server) -> None:
    lose_half(server)
    run(**{"lost-output": "repeat"})
    counts = server.counts()
    assert set(counts) == set(range(NUMBERS))
    assert set(counts.values()) == {1, 2}


def test_what_failed_checkpoints_carry_on_is_asked_for_again(
    server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One checkpoint fails after its output was prepared, and the next one must not cover it."""
    failed: list[int] = []
    complete = CheckpointStore.complete

    def fail_once(
        self: CheckpointStore, metadata: CheckpointMetadata, committed: bool = False
    ) -> bool:
        if len(server.committed) >= 2 and not failed:
            failed.append(metadata.checkpoint)
            server.vouches = False
            raise StorageError("no answer")
        server.vouches = server.vouches or metadata.attempt > 1
        return complete(self, metadata, committed)

    monkeypatch.setattr(CheckpointStore, "complete", fail_once)
    progress = run()
    assert failed
    assert progress.restarts == 1, "the attempt fails while the older checkpoint is there"
    assert server.counts() == Counter(range(NUMBERS))
