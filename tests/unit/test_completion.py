"""A manifest is written: what the job hears, when storage fails or another driver takes over."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from penstock.checkpoint.handles import OperatorSnapshot, SegmentHandle, SubtaskSnapshot
from penstock.checkpoint.metadata import CheckpointMetadata, VertexSnapshot
from penstock.checkpoint.savepoints import SavepointLocation
from penstock.checkpoint.store import CheckpointStore
from penstock.common import filesystem
from penstock.common.filesystem import MemoryFileSystem
from penstock.errors import StorageError, SupersededError
from penstock.jobmanager.completion import Completion

ROOT = "completion://"


class Storage(MemoryFileSystem):
    """Before a manifest is written, something else may happen."""

    def __init__(self) -> None:
        super().__init__()
        self.before_manifest: Iterator[Callable[[], None]] = iter(())

    def create(self, path: str, *parts: bytes) -> bool:
        if path.endswith("/_metadata"):
            next(self.before_manifest, lambda: None)()
        return super().create(path, *parts)


class Listener:
    """The attempt, whoever hears what became of its checkpoint, and its slow work, done at once."""

    number = 1

    def __init__(self) -> None:
        self.heard: list[Any] = []

    def submit(self, work: Callable[[], Any], done: Callable[[Any, Any], None]) -> None:
        try:
            result = work()
        except Exception as error:
            done(None, error)
        else:
            done(result, None)

    def runs(self, number: int) -> bool:
        return number == self.number

    def fail(self, error: Exception) -> None:
        self.heard.append(type(error))

    def completed(self, metadata: CheckpointMetadata) -> None:
        self.heard.append("completed")

    def savepoint_completed(self, metadata: CheckpointMetadata) -> None:
        self.heard.append("savepoint completed")

    def given_up(self, checkpoint: int, reason: str) -> None:
        self.heard.append("given up")

    def doubtful(self, metadata: CheckpointMetadata, reason: str) -> None:
        self.heard.append("doubtful")


@pytest.fixture
def storage(monkeypatch: pytest.MonkeyPatch) -> Storage:
    fs = Storage()
    monkeypatch.setitem(filesystem._SCHEMES, "completion", lambda authority: fs)
    return fs


@pytest.fixture
def store(storage: Storage) -> CheckpointStore:
    return CheckpointStore(f"{ROOT}/checkpoints", "job").claim()


@pytest.fixture
def savepoint(storage: Storage) -> SavepointLocation:
    return SavepointLocation(f"{ROOT}/savepoints", "savepoint-job-0123456789ab")


@pytest.fixture
def listener() -> Listener:
    return Listener()


@pytest.fixture
def completion(listener: Listener) -> Completion:
    return Completion(listener, listener, listener)


def metadata_of(segments: CheckpointStore) -> CheckpointMetadata:
    """Checkpoint 1, whose state lies in `segments`."""
    path = segments.write_segment("segment", b"state")
    state = OperatorSnapshot((SegmentHandle.of(path, b"state", range(128)),))
    vertex = VertexSnapshot("V", 1, 128, (SubtaskSnapshot(False, 0, {"u": state}),))
    return CheckpointMetadata("job", 1, 1, 0, {"u": vertex}, {}, {})


def test_a_job_can_restart_from_the_savepoint_that_stops_it(
    completion: Completion,
    listener: Listener,
    store: CheckpointStore,
    savepoint: SavepointLocation,
) -> None:
    completion.stop(store, metadata_of(savepoint.store()), savepoint)
    assert listener.heard == ["completed"]
    newest, damaged = store.newest()
    assert newest is not None, "without it the output of the stop would be committed twice"
    assert [store.read_whole(handle) for handle in newest.segments()] == [b"state"]
    assert damaged == []


def test_a_stop_whose_savepoint_was_abandoned_leaves_no_checkpoint(
    completion: Completion,
    listener: Listener,
    store: CheckpointStore,
    savepoint: SavepointLocation,
) -> None:
    metadata = metadata_of(savepoint.store())
    savepoint.abandon()
    completion.stop(store, metadata, savepoint)
    assert listener.heard == ["given up"]
    assert store.newest() == (None, [])


def test_a_driver_that_is_superseded_while_it_abandons_a_checkpoint_fails(
    completion: Completion, listener: Listener, store: CheckpointStore, storage: Storage
) -> None:
    def no_answer() -> None:
        raise StorageError("no answer")

    def take_over() -> None:
        store.claim()

    storage.before_manifest = iter((no_answer, take_over))
    completion.checkpoint(store, metadata_of(store))
    assert listener.heard == [SupersededError]
