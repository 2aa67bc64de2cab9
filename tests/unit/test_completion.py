"""A manifest is written: what the job hears, when storage fails or another driver takes over."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, cast

import pytest

from penstock.checkpoint.handles import OperatorSnapshot, SegmentHandle, SubtaskSnapshot
from penstock.checkpoint.metadata import CheckpointMetadata, VertexSnapshot
from penstock.checkpoint.savepoints import SavepointLocation, dispose, open_snapshot
from penstock.checkpoint.store import CheckpointStore
from penstock.common import filesystem
from penstock.common.filesystem import Content, MemoryFileSystem
from penstock.errors import SinkError, StorageError, SupersededError
from penstock.jobmanager.committing import Commits
from penstock.jobmanager.completion import Completion, Copy, Plan

ROOT = "completion://"


class Storage(MemoryFileSystem):
    """Before a manifest is written, something else may happen."""

    def __init__(self) -> None:
        super().__init__()
        self.before_manifest: Iterator[Callable[[], None]] = iter(())

    def create(self, path: str, content: Content) -> bool:
        if path.endswith("/_metadata"):
            next(self.before_manifest, lambda: None)()
        return super().create(path, content)


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

    def exists(self, metadata: CheckpointMetadata) -> bool:
        self.heard.append("exists")
        return True

    def commits(self, metadata: CheckpointMetadata) -> None:
        self.heard.append("commits")

    def settled(self, metadata: CheckpointMetadata) -> None:
        self.heard.append("settled")

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


class Committed:
    """Commits that note what was committed."""

    def __init__(self, listener: Listener) -> None:
        self._listener = listener
        self._waiting: dict[str, tuple[Any, ...]] = {}
        self.problem: Exception | None = None

    def add(self, committables: Any) -> None:
        self._waiting.update(committables)

    def unconfirmed(self) -> dict[str, tuple[Any, ...]]:
        return dict(self._waiting)

    def commit(self, committables: Any) -> None:
        self._listener.heard.append("committed")
        if self.problem is not None:
            raise self.problem

    def confirm(self, committables: Any) -> None:
        self._waiting.clear()


@pytest.fixture
def commits(listener: Listener) -> Committed:
    return Committed(listener)


@pytest.fixture
def completion(listener: Listener, commits: Committed) -> Completion:
    return Completion(listener, listener, cast(Commits, commits), listener)


def metadata_of(segments: CheckpointStore, *committables: str) -> CheckpointMetadata:
    """Checkpoint 1, whose state lies in `segments`."""
    path = segments.write_segment("segment", b"state")
    state = OperatorSnapshot((SegmentHandle.of(path, b"state", range(128)),))
    vertex = VertexSnapshot("V", 1, 128, (SubtaskSnapshot(False, 0, {"u": state}),))
    covers = {"sink": committables} if committables else {}
    return CheckpointMetadata("job", 1, 1, 0, {"u": vertex}, {}, covers)


def plan_of(
    store: CheckpointStore | None, savepoint: SavepointLocation, *committables: str
) -> Plan:
    copy = Copy(savepoint, metadata_of(savepoint.store(), *committables))
    own = metadata_of(store, *committables) if store is not None else copy.metadata
    return Plan(own, store, copy)


def test_the_steps_of_a_savepoint(
    completion: Completion,
    listener: Listener,
    store: CheckpointStore,
    savepoint: SavepointLocation,
) -> None:
    completion.begin(plan_of(store, savepoint, "a"))
    assert listener.heard == ["exists", "committed", "settled", "commits"]
    newest, damaged = store.newest()
    assert newest is not None and damaged == []
    assert all(not handle.foreign for handle in newest.segments()), "the copy may be moved"
    assert [store.read_whole(handle) for handle in newest.segments()] == [b"state"]
    assert store.is_committed(1)
    assert open_snapshot(savepoint.path).is_committed()


def test_a_checkpoint_whose_commit_fails_is_not_marked_and_nothing_is_settled(
    completion: Completion,
    commits: Committed,
    listener: Listener,
    store: CheckpointStore,
    savepoint: SavepointLocation,
) -> None:
    commits.problem = SinkError("no answer")
    completion.begin(plan_of(store, savepoint, "a"))
    assert listener.heard == ["exists", "committed", SinkError, "commits"]
    assert not store.is_committed(1)
    assert not open_snapshot(savepoint.path).is_committed()


def test_a_checkpoint_that_covers_nothing_needs_no_mark(
    completion: Completion, listener: Listener, store: CheckpointStore, storage: Storage
) -> None:
    completion.begin(Plan(metadata_of(store), store))
    assert listener.heard == ["exists", "settled", "commits"]
    assert not any(path.endswith("_committed") for path in storage.files)


def test_of_a_job_without_checkpoints_the_copy_is_all(
    completion: Completion, listener: Listener, savepoint: SavepointLocation
) -> None:
    completion.begin(plan_of(None, savepoint, "a"))
    assert listener.heard == ["exists", "committed", "settled", "commits"]
    assert open_snapshot(savepoint.path).is_committed()


@pytest.mark.parametrize("damage", [b"", b"something else", None])
def test_a_mark_that_does_not_fit_is_none(
    completion: Completion, store: CheckpointStore, storage: Storage, damage: bytes | None
) -> None:
    completion.begin(Plan(metadata_of(store, "a"), store))
    path = next(path for path in storage.files if path.endswith("_committed"))
    assert store.is_committed(1)
    if damage is None:
        del storage.files[path]
    else:
        storage.files[path] = damage
    assert not store.is_committed(1)


def test_what_is_deleted_takes_its_mark_with_it(
    completion: Completion, store: CheckpointStore, savepoint: SavepointLocation, storage: Storage
) -> None:
    completion.begin(plan_of(store, savepoint, "a"))
    newest, _ = store.newest()
    assert newest is not None
    store.discard(1, newest.segment_paths())
    dispose(savepoint.path)
    assert not any("chk-1" in path or "savepoint" in path for path in storage.files)


def test_a_mark_that_cannot_be_written_is_no_failure(
    completion: Completion,
    listener: Listener,
    store: CheckpointStore,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def no_answer(self: CheckpointStore, checkpoint: int) -> None:
        raise StorageError("no answer")

    monkeypatch.setattr(CheckpointStore, "mark_committed", no_answer)
    completion.begin(Plan(metadata_of(store, "a"), store))
    assert listener.heard == ["exists", "committed", "settled", "commits"]


def test_a_savepoint_whose_copy_was_abandoned_leaves_no_checkpoint(
    completion: Completion,
    listener: Listener,
    store: CheckpointStore,
    savepoint: SavepointLocation,
) -> None:
    plan = plan_of(store, savepoint)
    savepoint.abandon()
    completion.begin(plan)
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
    completion.begin(Plan(metadata_of(store), store))
    assert listener.heard == [SupersededError]
