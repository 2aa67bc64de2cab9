"""Which files of a job may be swept, and when."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.checkpoint.handles import OperatorSnapshot, SegmentHandle, SubtaskSnapshot
from penstock.checkpoint.metadata import CheckpointMetadata, VertexSnapshot
from penstock.checkpoint.orphans import Contents, Live, orphans
from penstock.checkpoint.store import CheckpointStore
from penstock.checkpoint.sweeping import MOST, OrphanSweep
from penstock.common import filesystem
from penstock.common.filesystem import MemoryFileSystem
from penstock.errors import CheckpointFormatError, StorageError, SupersededError

LIVE = Live(attempt=2, undecided=8, needed=7)


def contents(*segments, checkpoints=None, **more):
    checkpoints = {7: ()} if checkpoints is None else checkpoints
    paths = {c: frozenset(f"shared/{name}" for name in names) for c, names in checkpoints.items()}
    counting = tuple(sorted(checkpoints, reverse=True))
    return Contents(segments, paths, **{"counting": counting, **more})


def gone(found, live=LIVE, retained=1):
    return sorted(orphans(found, live, retained).segments)


# --- segments ---------------------------------------------------------------------------------


def test_what_a_checkpoint_refers_to_stays():
    assert gone(contents("1-3-0-a", "1-4-0-a", checkpoints={7: ["1-3-0-a"]})) == ["1-4-0-a"]


def test_what_the_running_attempt_is_writing_stays():
    assert gone(contents("2-7-0-a", "2-8-0-a", "2-9-0-a-own")) == ["2-7-0-a"]


def test_what_an_earlier_attempt_is_still_writing_leads_nowhere():
    assert gone(contents("1-9-0-a")) == ["1-9-0-a"]


def test_what_a_later_driver_writes_is_not_ours():
    assert gone(contents("1000001-1-0-a")) == []


def test_the_newest_result_of_a_compaction_may_be_built_upon_yet():
    names = ("2-3-0-a-merged", "2-10-0-a-merged", "2-5-1-a-merged", "2-5-0-b-merged")
    live = replace(LIVE, undecided=11)
    assert gone(contents(*names), live) == ["2-3-0-a-merged"]
    assert gone(contents("1-5-0-a-merged"), live) == ["1-5-0-a-merged"], "of a dead attempt"


def test_what_was_logged_since_what_slots_build_upon_stays():
    live = replace(LIVE, undecided=11)
    names = ("2-7-0-a-log-3", "2-8-0-a-log-4", "2-10-0-a-log-9", "1-9-0-a-log-1")
    assert gone(contents(*names), live) == ["1-9-0-a-log-1", "2-7-0-a-log-3"]


def test_copies_of_a_savepoint_that_were_not_finished_go():
    assert gone(contents("2-8-from-x-1", "1-1-from-y-2")) == ["1-1-from-y-2", "2-8-from-x-1"]


def test_half_written_files_are_treated_as_what_they_would_have_been():
    half = "." + 32 * "a" + ".tmp"
    names = (f"2-7-0-a{half}", f"2-8-0-a{half}", f"2-3-0-b-merged{half}")
    assert gone(contents(*names)) == [f"2-7-0-a{half}"]


@pytest.mark.parametrize("name", ["readme.txt", "savepoint-ab12-34", "x-1-0-a", ".probe"])
def test_what_is_not_named_like_a_segment_is_not_ours(name):
    assert gone(contents(name)) == []


def test_before_the_first_checkpoint_nothing_goes():
    assert orphans(Contents(("1-1-0-a",), {}, ()), LIVE, 1).segments == frozenset()


def test_while_a_manifest_cannot_be_read_no_segment_goes():
    found = contents("1-3-0-a", damaged=frozenset({6}))
    assert orphans(found, LIVE, 1).segments == frozenset()
    assert orphans(found, LIVE, 1).checkpoints == {6}, "but it is older than a complete one"


# --- checkpoints ------------------------------------------------------------------------------


def old(found, live=LIVE, retained=1):
    return sorted(orphans(found, live, retained).checkpoints)


def test_checkpoints_beyond_the_number_retained_go_with_their_segments():
    found = contents("1-5-0-a", "1-6-0-a", checkpoints={5: ["1-5-0-a"], 6: ["1-6-0-a"], 7: []})
    assert old(found, retained=2) == [5]
    assert gone(found, retained=2) == ["1-5-0-a"]
    assert old(found, replace(LIVE, known=frozenset({5})), retained=2) == []


def test_what_slots_build_upon_stays_and_all_that_is_newer():
    found = contents(checkpoints={4: [], 5: [], 6: [], 7: []})
    assert old(found, replace(LIVE, needed=5)) == [4]


def test_tombstones_and_torn_folders_go_once_a_newer_one_is_complete():
    assert old(contents(others=frozenset({3, 9}))) == [3], "9 may have been abandoned just now"


def test_checkpoints_that_lead_nowhere_go():
    assert old(contents(checkpoints={5: [], 7: [], 9: []}, counting=(7,))) == [5]


names = st.builds(
    "{}-{}-{}-{}{}".format,
    st.integers(1, 3),
    st.integers(1, 9),
    st.integers(0, 1),
    st.sampled_from("ab"),
    st.sampled_from(["", "-own", "-merged"]),
)


@given(
    st.dictionaries(st.integers(1, 9), st.sets(names, max_size=4), min_size=1),
    st.sets(names),
    st.integers(1, 3),
    st.integers(1, 9),
)
def test_what_is_kept_is_whole(checkpoints, more, retained, needed):
    segments = tuple(sorted(more.union(*checkpoints.values())))
    found = orphans(
        contents(*segments, checkpoints=checkpoints), replace(LIVE, needed=needed), retained
    )
    kept = {c: refs for c, refs in checkpoints.items() if c not in found.checkpoints}
    assert not found.segments & set().union(*kept.values())
    assert sorted(checkpoints)[-retained:] == sorted(kept)[-retained:]
    assert all(c in kept for c in checkpoints if c >= needed)


# --- sweeping ---------------------------------------------------------------------------------

NOBODY = Live(attempt=9, undecided=1 << 62, needed=1 << 62)


@pytest.fixture
def memory(monkeypatch):
    fs = MemoryFileSystem()
    monkeypatch.setitem(filesystem._SCHEMES, "orphans", lambda authority: fs)
    return fs


@pytest.fixture
def store(memory):
    return CheckpointStore("orphans:///base", "job").claim()


def complete(store, checkpoint, *names):
    handles = [SegmentHandle.of(store.write_segment(n, b"x"), b"x", range(8)) for n in names]
    operators = {"u": OperatorSnapshot(tuple(handles))}
    vertex = VertexSnapshot("V", 1, 128, (SubtaskSnapshot(False, 0, operators),))
    assert store.complete(CheckpointMetadata("job", checkpoint, 1, 0, {"u": vertex}, {}, {}))


def files(memory):
    return {path.removeprefix("/base/job/") for path in memory.files}


def test_an_orphan_goes_when_it_has_been_one_for_the_grace_period(store, memory, clock):
    complete(store, 1, "1-1-0-a")
    complete(store, 2, "1-2-0-a")
    store.write_segment("1-3-0-a", b"orphan")
    store.abandon(1_000)
    sweep = OrphanSweep(store, 1, 1000, clock)
    before = files(memory)
    sweep.run(NOBODY)
    clock.now += 999
    sweep.run(NOBODY)
    assert files(memory) == before
    clock.now += 1
    sweep.run(NOBODY)
    kept = {"chk-2/_metadata", "shared/1-2-0-a", "chk-1000/_metadata", "generation-1"}
    assert files(memory) == kept
    assert store.newest() == (store.manifests()[0], [])


def test_what_is_referred_to_again_begins_anew(store, memory, clock):
    complete(store, 1)
    sweep = OrphanSweep(store, 2, 1000, clock)
    store.write_segment("1-2-0-a", b"x")
    sweep.run(NOBODY)
    clock.now += 600
    handle = SegmentHandle.of("shared/1-2-0-a", b"x", range(8))
    vertex = VertexSnapshot(
        "V", 1, 128, (SubtaskSnapshot(False, 0, {"u": OperatorSnapshot((handle,))}),)
    )
    store.complete(CheckpointMetadata("job", 2, 1, 0, {"u": vertex}, {}, {}))
    sweep.run(NOBODY)
    store.remove_checkpoint(2)
    clock.now += 600
    sweep.run(NOBODY)
    assert "shared/1-2-0-a" in files(memory), "it is an orphan since just now"


def test_neither_other_jobs_nor_savepoints_are_touched(store, memory, clock):
    complete(store, 2)
    others = {
        "/base/other-job/shared/1-1-0-a",
        "/base/savepoint-job-1/shared/1-1-0-a",
        "/base/job/savepoint-job-2/shared/1-1-0-a",
        "/base/job/taskowned/1-1-0-a",
        "/base/jobs/chk-1/_metadata",
    }
    for path in others:
        memory.create(path, b"not ours")
    OrphanSweep(store, 1, 0, clock).run(NOBODY)
    assert others <= memory.files.keys()


def test_a_driver_that_was_superseded_deletes_nothing(store, memory, clock):
    complete(store, 1)
    store.write_segment("1-2-0-a", b"x")
    sweep = OrphanSweep(store, 1, 0, clock)
    store.claim()
    with pytest.raises(SupersededError):
        sweep.run(NOBODY)
    assert "shared/1-2-0-a" in files(memory)


def test_what_a_newer_version_wrote_is_not_judged(store, memory, clock):
    complete(store, 1)
    store.write_segment("1-2-0-a", b"x")
    memory.create("/base/job/chk-2/_metadata", b'{"format": 99, "sha256": "", "content": {}}')
    with pytest.raises(CheckpointFormatError):
        OrphanSweep(store, 1, 0, clock).run(NOBODY)
    assert "shared/1-2-0-a" in files(memory)


def test_many_go_a_few_at_a_time_and_storage_that_fails_is_asked_again(store, memory, clock):
    complete(store, 1)
    for number in range(MOST + 10):
        store.write_segment(f"1-2-{number}-a", b"x")
    sweep = OrphanSweep(store, 1, 0, clock)
    delete, fails = memory.delete, [True]

    def failing(path):
        if fails and "/shared/1-2-0-a" in path:
            raise StorageError("does not answer")
        delete(path)

    memory.delete = failing
    with pytest.raises(StorageError):
        sweep.run(NOBODY)
    fails.clear()
    assert sweep.run(NOBODY) > 0, "there are more"
    assert sweep.run(NOBODY) == 0
    assert not any(name.startswith("shared/") for name in files(memory))


def test_on_a_disk_torn_folders_and_half_files_go_too(tmp_path, clock):
    store = CheckpointStore(str(tmp_path), "job").claim()
    half = "." + 32 * "0" + ".tmp"
    for checkpoint in (1, 2):
        (tmp_path / f"job/chk-{checkpoint}").mkdir(parents=True)
    (tmp_path / f"job/chk-2/_metadata{half}").touch()
    complete(store, 3, "1-3-0-a")
    (tmp_path / f"job/shared/1-2-0-a{half}").touch()
    OrphanSweep(store, 1, 0, clock).run(NOBODY)
    left = {
        str(path.relative_to(tmp_path / "job")) for path in tmp_path.rglob("*") if path.is_file()
    }
    assert left == {"chk-3/_metadata", "shared/1-3-0-a", "generation-1"}
    assert sorted(path.name for path in (tmp_path / "job").iterdir()) == [
        "chk-3", "generation-1", "shared",
    ]  # fmt: skip
