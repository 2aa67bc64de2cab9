"""Two drivers of one job: whoever took it over last goes on, and the other can do nothing."""

from __future__ import annotations

import itertools
import threading

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.checkpoint.handles import OperatorSnapshot, SegmentHandle, SubtaskSnapshot
from penstock.checkpoint.imports import import_checkpoint
from penstock.checkpoint.lineage import attempts_before, lineage
from penstock.checkpoint.metadata import CheckpointMetadata, VertexSnapshot
from penstock.checkpoint.store import CheckpointStore
from penstock.common import filesystem
from penstock.common.filesystem import MemoryFileSystem
from penstock.errors import (
    CheckpointError,
    CheckpointFormatError,
    CorruptCheckpointError,
    SupersededError,
)


@pytest.fixture
def memory(monkeypatch):
    fs = MemoryFileSystem()
    monkeypatch.setitem(filesystem._SCHEMES, "drivers", lambda authority: fs)
    return fs


@pytest.fixture
def looker(memory):
    return CheckpointStore("drivers:///base", "job")


def metadata(checkpoint, *handles):
    operators = {"u": OperatorSnapshot(tuple(handles))}
    vertex = VertexSnapshot("V", 1, 128, (SubtaskSnapshot(False, 0, operators),))
    return CheckpointMetadata("job", checkpoint, 1, 0, {"u": vertex}, {}, {})


def begin(looker):
    """A driver takes over and begins where it can; its store, and the checkpoint."""
    store = looker.claim()
    newest, _ = store.newest()
    checkpoint = newest.checkpoint if newest is not None else 0
    store.note_start(checkpoint)
    return store, checkpoint


# --- the rule ---------------------------------------------------------------------------------


def test_what_an_older_driver_completes_too_late_counts_for_nobody():
    assert lineage({1: 1, 2: 1, 3: 1}, {1: 0, 2: 2}, 2) == [2, 1]
    assert lineage({1: 1, 2: 1, 3: 1}, {1: 0, 2: 2}, 3) == [2, 1], "nor for a third"
    assert lineage({1: 1, 2: 1, 3: 1, 5: 2}, {1: 0, 2: 2}, 3) == [5, 2, 1]


def test_a_driver_that_noted_no_start_did_nothing():
    assert lineage({1: 1, 2: 1}, {1: 0}, 3) == [2, 1]


def test_going_back_cuts_the_newer_ones_off():
    assert lineage({1: 1, 2: 1, 3: 2, 4: 3}, {1: 0, 2: 2, 3: 1}, 3) == [4, 1]


@given(
    st.dictionaries(st.integers(1, 12), st.integers(1, 5)),
    st.dictionaries(st.integers(1, 5), st.integers(0, 12)),
)
def test_a_lineage_never_holds_what_a_start_cut_off(checkpoints, starts):
    for generation in range(1, 7):
        for checkpoint in lineage(checkpoints, starts, generation):
            made_by = checkpoints[checkpoint]
            assert made_by <= generation
            later = [base for g, base in starts.items() if made_by < g <= generation]
            assert all(checkpoint <= base for base in later)


def test_attempts_of_two_drivers_never_have_one_number():
    assert [attempts_before(g) for g in (0, 1, 2, 3)] == [0, 0, 1_000_000, 2_000_000]


# --- drivers ----------------------------------------------------------------------------------


def test_racing_drivers_have_different_generations(tmp_path):
    looker = CheckpointStore(str(tmp_path), "job")
    start, claimed = threading.Barrier(6), []

    def claim():
        start.wait()
        claimed.append(looker.claim().generation)

    threads = [threading.Thread(target=claim) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(claimed) == [1, 2, 3, 4, 5, 6]


def test_a_superseded_driver_completes_nothing(looker):
    old, _ = begin(looker)
    assert old.complete(metadata(1))
    new, base = begin(looker)
    assert base == 1
    for act in (
        lambda: old.complete(metadata(2)),
        lambda: old.abandon(3),
        lambda: old.note_start(1),
        lambda: old.discard_all(),
    ):
        with pytest.raises(SupersededError, match=r"generation 2 .* this one is generation 1"):
            act()
    assert new.newest()[0].checkpoint == 1, "what it wrote too late leads nowhere"
    third, base = begin(looker)
    assert base == 1 and third.generation == 3


def test_an_id_that_the_older_driver_took_is_abandoned_for_the_newer(looker):
    old, _ = begin(looker)
    new, _ = begin(looker)
    with pytest.raises(SupersededError):
        old.complete(metadata(1))
    assert not new.complete(metadata(1))
    assert new.abandon(1)
    assert new.complete(metadata(2))
    assert new.newest()[0].checkpoint == 2


def steps_of_old(store):
    yield lambda: store._metadata_path(2)[0].create(
        store._metadata_path(2)[1], _encoded(store, metadata(2))
    )
    yield store.check_current


def _encoded(store, made):
    from dataclasses import replace

    from penstock.checkpoint.metadata import encode_metadata

    return encode_metadata(replace(made, generation=store.generation))


def test_in_every_order_of_steps_both_drivers_agree(memory):
    """The older driver: write, look. The newer one: claim, choose, note, look. All 15 orders."""
    outcomes = set()
    for positions in itertools.combinations(range(6), 2):
        memory.files.clear()
        looker = CheckpointStore("drivers:///base", "job")
        old, _ = begin(looker)
        old.complete(metadata(1))
        new = {}

        def claim(new=new, looker=looker):
            new["store"] = looker.claim()

        def choose(new=new):
            new["base"] = new["store"].newest()[0].checkpoint

        def note(new=new):
            new["store"].note_start(new["base"])

        theirs = iter([claim, choose, note, lambda new=new: new["store"].check_current()])
        ours, commits = steps_of_old(old), True
        for turn in range(6):
            try:
                (next(ours) if turn in positions else next(theirs))()
            except SupersededError:
                assert turn in positions
                commits = False
        if commits:
            assert new["base"] == 2, "committed by the older, so the newer begins with it"
        _, base = begin(looker)
        assert base == new["base"], "and whoever comes next agrees"
        outcomes.add((commits, new["base"]))
    assert outcomes == {(True, 2), (False, 2), (False, 1)}


# --- the end of a job -------------------------------------------------------------------------


def segment(store, name, data=b"state"):
    return SegmentHandle.of(store.write_segment(name, data), data, range(128))


def test_the_end_of_a_job_with_one_driver_leaves_nothing(looker, memory):
    store, _ = begin(looker)
    store.complete(metadata(1, segment(store, "a")))
    store.discard_all()
    assert memory.files == {}
    assert begin(looker) == (CheckpointStore("drivers:///base", "job", 1), 0), "afresh"


@pytest.mark.parametrize("named", [False, True])
def test_a_mark_stays_where_somebody_could_be_mistaken(looker, memory, named):
    old, _ = begin(looker)
    last = old if named else begin(looker)[0]
    last.complete(metadata(1, segment(last, "a")))
    last.discard_all(named)
    assert list(memory.files) == [f"/base/job/generation-{last.generation + 1}"]
    if not named:
        with pytest.raises(SupersededError):
            old.complete(metadata(7))
    fresh, base = begin(looker)
    assert base == 0 and fresh.generation == last.generation + 2


def test_a_deletion_that_broke_off_is_an_end_all_the_same(looker, memory):
    store, _ = begin(looker)
    store.complete(metadata(1))
    store._generations().end(store.generation)
    assert begin(looker)[1] == 0


def test_an_end_whose_answer_was_lost_is_an_end_all_the_same(looker, memory):
    """The mark is there already, and it is our own."""
    store, _ = begin(looker)
    store.complete(metadata(1, segment(store, "a")))
    store._generations().end(store.generation)
    store.discard_all()
    assert memory.files == {}


def test_an_end_is_not_repeated_when_somebody_has_come_since(looker, memory):
    old, _ = begin(looker)
    old.complete(metadata(1))
    old._generations().end(old.generation)
    new, _ = begin(looker)
    new.complete(metadata(2, segment(new, "new")))
    with pytest.raises(SupersededError):
        old.discard_all()
    assert new.newest()[0].checkpoint == 2


def test_the_end_spares_what_a_later_driver_wrote(looker, memory, monkeypatch):
    """The next driver begins while the last one is still deleting."""
    old, _ = begin(looker)
    old.complete(metadata(1, segment(old, "a")))
    later = []
    original = MemoryFileSystem.delete

    def delete(self, path):
        if not later:
            later.append(None)
            new, base = begin(looker)
            assert base == 0
            new.complete(metadata(9, segment(new, "new")))
            later[0] = new
        original(self, path)

    monkeypatch.setattr(memory, "delete", delete.__get__(memory))
    old.discard_all()
    newest, notes = later[0].newest()
    assert newest.checkpoint == 9 and notes == []
    later[0].check_current()


# --- beginning with another checkpoint --------------------------------------------------------


@pytest.fixture
def other(memory):
    store = CheckpointStore("drivers:///base", "other").claim()
    for checkpoint in (1, 2, 3):
        store.complete(metadata(checkpoint, segment(store, f"s{checkpoint}", b"x" * checkpoint)))
    return store


@pytest.mark.parametrize("end", ["", "/", "/_metadata"])
def test_any_retained_checkpoint_can_be_begun_with(looker, memory, other, end):
    store = looker.claim()
    import_checkpoint(store, f"drivers:///base/other/chk-2{end}")
    other.discard_all()
    newest, notes = store.newest()
    assert notes == [] and newest.job_id == "job" and newest.generation == store.generation
    [handle] = newest.segments()
    assert store.read_whole(handle) == b"xx", "a copy of its own"


def test_a_flipped_bit_is_seen_and_the_whole_ones_are_named(looker, memory, other):
    memory.files["/base/other/shared/s2"] = b"xy"
    with pytest.raises(CorruptCheckpointError) as refused:
        import_checkpoint(looker.claim(), "drivers:///base/other/chk-2")
    assert "shared/s2 was altered" in str(refused.value)
    assert str(refused.value).endswith("whole in drivers:///base/other: chk-1, chk-3")
    assert not [path for path in memory.files if "/job/shared" in path], "nothing half"


def test_a_missing_segment_is_named_with_the_whole_ones(looker, memory, other):
    del memory.files["/base/other/shared/s3"]
    with pytest.raises(CorruptCheckpointError, match=r"s3 is missing; whole in .*: chk-1, chk-2$"):
        import_checkpoint(looker.claim(), "drivers:///base/other/chk-3")


def test_an_empty_manifest_is_cut_short(looker, memory, other):
    memory.files["/base/other/chk-3/_metadata"] = b""
    with pytest.raises(CorruptCheckpointError, match="cut short or not a checkpoint: it is empty"):
        import_checkpoint(looker.claim(), "drivers:///base/other/chk-3")


@pytest.mark.parametrize("path", ["drivers:///base/other/chk-9", "drivers:///base/other", "x"])
def test_what_is_no_checkpoint_is_refused(looker, other, path):
    with pytest.raises(
        CheckpointError,
        match=r"there is no savepoint or checkpoint|is no savepoint or checkpoint: ",
    ):
        import_checkpoint(looker.claim(), path)


def test_a_newer_format_is_refused_and_not_passed_over(looker, memory, other):
    path = "/base/other/chk-3/_metadata"
    memory.files[path] = memory.files[path].replace(b'"format": 2', b'"format": 3')
    with pytest.raises(CheckpointFormatError, match="use the version that wrote it"):
        other.newest()
