"""Where checkpoints are: one winner, whole or passed over, and nothing deleted that is needed."""

from __future__ import annotations

import threading

import pytest

from penstock.checkpoint.handles import OperatorSnapshot, SegmentHandle, SubtaskSnapshot
from penstock.checkpoint.metadata import CheckpointMetadata, VertexSnapshot
from penstock.checkpoint.store import CheckpointStore
from penstock.common import filesystem
from penstock.common.filesystem import MemoryFileSystem
from penstock.errors import CheckpointDirectoryError, StorageError
from penstock.jobmanager.endings import discard_all_but


class Flaky(MemoryFileSystem):
    """Does not answer when asked for what is in `silent`."""

    def __init__(self):
        super().__init__()
        self.silent = set()

    def _ask(self, path):
        if any(path.endswith(end) for end in self.silent):
            raise StorageError(f"cannot read {path}: timed out")

    def read(self, path):
        self._ask(path)
        return super().read(path)

    def sizes(self, directory):
        self._ask(directory)
        return super().sizes(directory)

    def exists(self, path):
        self._ask(path)
        return super().exists(path)


@pytest.fixture
def memory(monkeypatch):
    fs = Flaky()
    monkeypatch.setitem(filesystem._SCHEMES, "store-test", lambda authority: fs)
    return fs


@pytest.fixture
def store(memory):
    return CheckpointStore("store-test:///base", "job-1")


def metadata(checkpoint, *handles):
    operators = {"u": OperatorSnapshot(tuple(handles))}
    vertex = VertexSnapshot("V", 1, 128, (SubtaskSnapshot(False, 0, operators),))
    return CheckpointMetadata("job-1", checkpoint, 1, 0, {"u": vertex}, {}, {})


def segment(store, name, data=b"state"):
    return SegmentHandle.of(store.write_segment(name, data), data, range(128))


def test_a_committed_checkpoint_never_exists_beside_the_mark_of_another(store, memory, monkeypatch):
    """Two drivers begin with the same savepoint under one id; the first stops before it exists."""
    first, second = store.claim(), store.claim()

    def stop(self, path, *parts):
        raise StorageError(f"cannot create {path}")

    with monkeypatch.context() as patch:
        create = Flaky.create
        patch.setattr(
            Flaky,
            "create",
            lambda fs, path, *parts: (stop if path.endswith("_metadata") else create)(
                fs, path, *parts
            ),
        )
        with pytest.raises(StorageError):
            first.complete(metadata(1), committed=True)
    assert not second.complete(metadata(1), committed=True)
    assert second.first_id() == 2
    assert second.complete(metadata(2), committed=True)
    assert second.complete(metadata(2), committed=True), "told twice: an answer may have been lost"
    assert second.newest()[0].checkpoint == 2
    assert second.is_committed(2)


METADATA = "/base/job-1/chk-{}/_metadata"


# --- complete or abandoned --------------------------------------------------------------------


def test_a_checkpoint_exists_when_its_manifest_does(store, memory):
    assert store.newest() == (None, [])
    assert store.complete(metadata(1))
    assert list(memory.files) == [METADATA.format(1)]
    assert store.newest() == (metadata(1), [])


def test_a_checkpoint_that_was_abandoned_never_comes_true(store):
    assert store.abandon(1)
    assert not store.complete(metadata(1))
    assert store.abandon(1), "abandoning it again is fine"
    assert store.newest() == (None, [])


def test_a_checkpoint_that_exists_cannot_be_abandoned(store):
    store.complete(metadata(1))
    assert not store.abandon(1)
    assert store.complete(metadata(1)), "told twice: the first answer may have been lost"
    assert store.newest()[0] == metadata(1)


@pytest.mark.parametrize("where", ["local", "memory"])
def test_the_race_has_one_winner(tmp_path, memory, where):
    directory = str(tmp_path) if where == "local" else "store-test:///race"
    store = CheckpointStore(directory, "job")
    for checkpoint in range(1, 31):
        start, results = threading.Barrier(2), {}

        def complete(c=checkpoint, start=start, results=results):
            start.wait()
            results["completed"] = store.complete(metadata(c))

        def abandon(c=checkpoint, start=start, results=results):
            start.wait()
            results["abandoned"] = store.abandon(c)

        threads = [threading.Thread(target=each) for each in (complete, abandon)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert results["completed"] != results["abandoned"]
        newest = store.newest()[0]
        exists = newest is not None and newest.checkpoint == checkpoint
        assert exists == results["completed"]


# --- the newest -------------------------------------------------------------------------------


def test_ids_begin_above_every_one_that_was_used_whatever_became_of_it(store):
    assert store.first_id() == 1
    store.abandon(3)
    assert store.first_id() == 4
    store.claim().note_start(7)
    assert store.first_id() == 8


def test_the_newest_is_the_highest_number_and_not_the_last_by_name(store):
    for checkpoint in (2, 10, 9):
        store.complete(metadata(checkpoint))
    assert store.ids() == [2, 9, 10]
    assert store.newest()[0].checkpoint == 10


def test_tombstones_and_empty_directories_are_passed_over_silently(store, memory):
    store.complete(metadata(1))
    store.abandon(2)
    memory.create("/base/job-1/chk-3/other", b"")
    memory.create("/base/job-1/chk-x/_metadata", b"")
    assert store.ids() == [1, 2, 3]
    assert store.newest() == (metadata(1), [])


def test_damaged_ones_are_passed_over_and_told(store, memory):
    store.complete(metadata(1, segment(store, "a")))
    store.complete(metadata(2, segment(store, "b")))
    store.complete(metadata(3, segment(store, "c")))
    store.complete(metadata(4, segment(store, "d")))
    memory.files[METADATA.format(4)] = memory.files[METADATA.format(4)][:-5]
    del memory.files["/base/job-1/shared/c"]
    memory.files["/base/job-1/shared/b"] = b"torn"
    newest, told = store.newest()
    assert newest.checkpoint == 1
    assert told == [
        f"checkpoint 4 cannot be used: {METADATA.format(4)} is cut short or not a checkpoint",
        "checkpoint 3 cannot be used: shared/c is missing",
        "checkpoint 2 cannot be used: shared/b has 4 bytes, 5 were written: it is cut short",
    ]


def test_no_segment_is_read_to_find_the_newest(store, memory):
    store.complete(metadata(1, segment(store, "a")))
    store.complete(metadata(2, segment(store, "a2"), segment(store, "b")))
    memory.silent.add("shared/b")
    assert store.newest()[0].checkpoint == 2


def test_one_that_was_found_to_be_damaged_is_passed_over(store):
    for checkpoint in (1, 2, 3):
        store.complete(metadata(checkpoint, segment(store, f"s{checkpoint}")))
    newest, told = store.newest({2: "shared/s2 was altered", 3: "shared/s3 was altered"})
    assert newest.checkpoint == 1
    assert told == [
        "checkpoint 3 cannot be used: shared/s3 was altered",
        "checkpoint 2 cannot be used: shared/s2 was altered",
    ]
    store.complete(metadata(4, segment(store, "s4")))
    newest, told = store.newest({2: "shared/s2 was altered", 3: "shared/s3 was altered"})
    assert (newest.checkpoint, told) == (4, [])


def test_when_all_are_damaged_there_is_none(store, memory):
    store.complete(metadata(1))
    memory.files[METADATA.format(1)] = b""
    newest, told = store.newest()
    assert newest is None and len(told) == 1


@pytest.mark.parametrize("silent", ["chk-2/_metadata", "job-1/shared"])
def test_storage_that_does_not_answer_is_not_passed_over(store, memory, silent):
    """An older checkpoint would repeat what the newer one has committed."""
    store.complete(metadata(1, segment(store, "a")))
    store.complete(metadata(2, segment(store, "b")))
    memory.silent.add(silent)
    with pytest.raises(StorageError, match="timed out"):
        store.newest()
    memory.silent.clear()
    assert store.newest()[0].checkpoint == 2


# --- segments ---------------------------------------------------------------------------------


def test_a_segments_name_is_used_once(store):
    store.write_segment("a", b"1")
    with pytest.raises(StorageError, match="segment shared/a exists: its name was used before"):
        store.write_segment("a", b"1")


@pytest.fixture(params=["memory", "local"])
def full_store(request, memory, tmp_path):
    directory = "store-test:///base" if request.param == "memory" else str(tmp_path)
    store = CheckpointStore(directory, "job-1")
    for checkpoint, name in ((1, "a"), (2, "b")):
        store.complete(metadata(checkpoint, segment(store, name)))
    return store


def test_discarding_takes_the_manifest_and_the_named_segments(full_store):
    full_store.discard(1, frozenset({"shared/a"}))
    assert full_store.ids() == [2]
    with pytest.raises(StorageError, match="no such file"):
        full_store.read_segment("shared/a")
    assert full_store.newest()[0].checkpoint == 2
    full_store.discard(1, frozenset({"shared/a"}))


def test_discarding_everything_leaves_nothing_of_this_job(full_store):
    other = CheckpointStore(full_store.directory, "job-2")
    other.complete(metadata(1))
    full_store.discard_all()
    fs, base = filesystem.filesystem_for(full_store.directory)
    assert fs.list(base) == ["job-2"]
    assert other.newest()[0] is not None


def test_the_manifest_is_deleted_before_the_segments(store, memory, monkeypatch):
    """A checkpoint that exists is whole, also for one who looks in the middle of a deletion."""
    store.complete(metadata(1, segment(store, "a")))
    deleted = []
    monkeypatch.setattr(memory, "delete", deleted.append)
    store.discard(1, frozenset({"shared/a"}))
    assert deleted[0] == METADATA.format(1)
    assert deleted[-1] == "/base/job-1/shared/a"


# --- the directory ----------------------------------------------------------------------------


def test_preparing_leaves_nothing_behind(tmp_path):
    CheckpointStore(f"{tmp_path}/new/place", "job").prepare()
    assert [p for p in tmp_path.rglob("*") if p.is_file()] == []


def test_storage_that_replaces_files_is_refused(store, memory, monkeypatch):
    def replaces(path, *parts):
        memory.files[path] = b"".join(parts)
        return True

    monkeypatch.setattr(memory, "create", replaces)
    with pytest.raises(CheckpointDirectoryError, match="would overwrite each other's checkpoints"):
        store.prepare()
    assert memory.files == {}


def test_two_drivers_may_prepare_at_once(store, memory, monkeypatch):
    create = memory.create

    def beside_another(path, *parts):
        monkeypatch.setattr(memory, "create", create)
        store.prepare()
        return create(path, *parts)

    monkeypatch.setattr(memory, "create", beside_another)
    store.prepare()
    assert memory.files == {}


def test_a_directory_that_cannot_be_used_names_itself_and_the_key(tmp_path):
    (tmp_path / "file").write_bytes(b"")
    directory = f"{tmp_path}/file/below"
    with pytest.raises(CheckpointDirectoryError) as refused:
        CheckpointStore(directory, "job").prepare()
    assert str(refused.value).startswith(f"checkpoint directory {directory} cannot be used: ")
    assert str(refused.value).endswith("choose another with execution.checkpointing.dir")


# --- when the job has ended -------------------------------------------------------------------


def test_the_newest_checkpoints_are_left_when_a_job_ends(store, memory):
    shared, old, new = (segment(store, name) for name in ("1-1-0-a", "1-2-0-a", "1-3-0-a"))
    for checkpoint, handles in ((1, (shared,)), (2, (shared, old)), (3, (shared, new))):
        assert store.complete(metadata(checkpoint, *handles))
    discard_all_but(store, 1, newest=3)
    assert store.whole() == [3]
    assert sorted(memory.files) == [
        METADATA.format(3),
        "/base/job-1/shared/1-1-0-a",
        "/base/job-1/shared/1-3-0-a",
    ]


def test_a_checkpoint_is_left_when_only_damaged_ones_are_newer(store, memory):
    for checkpoint in (1, 2, 3):
        handle = segment(store, f"1-{checkpoint}-0-a")
        assert store.complete(metadata(checkpoint, handle))
    memory.files["/base/job-1/shared/1-3-0-a"] = b"torn"
    [usable, damaged] = [store.newest()[0].checkpoint, store.newest()[1]]
    assert usable == 2 and len(damaged) == 1
    discard_all_but(store, 1, usable)
    assert store.ids() == [2, 3]
    assert store.whole() == [2]
