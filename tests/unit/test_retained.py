"""Which checkpoints of a job are kept, and which segments may be deleted with the others."""

from __future__ import annotations

import pytest

from penstock.checkpoint.handles import OperatorSnapshot, SegmentHandle, SubtaskSnapshot
from penstock.checkpoint.metadata import CheckpointMetadata, VertexSnapshot
from penstock.jobmanager.recovery import StartPoint
from penstock.jobmanager.retained import Retained


def metadata(checkpoint, *segments):
    handles = tuple(SegmentHandle.of(name, b"", range(1)) for name in segments)
    subtask = SubtaskSnapshot(False, 0, {"u": OperatorSnapshot(handles)})
    vertex = VertexSnapshot("V", 1, 128, (subtask,))
    return CheckpointMetadata("job", checkpoint, 1, 0, {"u": vertex}, {}, {})


@pytest.fixture
def retained():
    """Two are kept; each of three builds upon one segment."""
    made = Retained(2)
    for checkpoint in (1, 2, 3):
        made.completed(metadata(checkpoint, "shared/base", f"shared/delta-{checkpoint}"))
    return made


def restore(retained, checkpoint, *segments):
    retained.restored(StartPoint(checkpoint, {}, {}, [], frozenset(segments)))


def test_more_than_enough_are_deleted_with_what_no_other_refers_to(retained):
    assert retained.take_superfluous(3, None) == {1: {"shared/delta-1"}}
    assert retained.ids() == {2, 3}
    assert retained.take_superfluous(3, None) == {}


def test_all_stay_from_the_one_that_is_committed(retained):
    assert retained.take_superfluous(1, None) == {}
    assert retained.ids() == {1, 2, 3}


def test_what_a_newer_one_in_doubt_refers_to_stays(retained):
    retained.doubt(metadata(4, "shared/delta-1", "shared/delta-4"))
    assert retained.take_superfluous(3, None) == {1: frozenset()}
    retained.completed(metadata(5, "shared/base"))
    gone = retained.take_superfluous(5, None)
    assert gone[4] == {"shared/delta-1", "shared/delta-4"}


def test_all_stay_from_the_one_that_is_needed(retained):
    assert retained.take_superfluous(3, 1) == {}
    assert retained.ids() == {1, 2, 3}


def test_what_is_newer_than_the_start_of_an_attempt_is_no_checkpoint_any_more(retained):
    restore(retained, 2, "shared/base", "shared/delta-2")
    assert retained.ids() == {1, 2}


def test_a_start_from_nothing_leaves_none(retained):
    restore(retained, 0)
    assert retained.ids() == frozenset()


def test_a_checkpoint_in_doubt_is_deleted_when_a_newer_one_is_complete(retained):
    retained.doubt(metadata(4, "shared/base", "shared/delta-4"))
    retained.completed(metadata(5, "shared/base", "shared/delta-5"))
    assert retained.take_superfluous(5, None)[4] == {"shared/delta-4"}
    assert 4 not in retained.take_superfluous(5, None), "once"


def test_a_new_attempt_knows_what_becomes_of_a_checkpoint_in_doubt(retained):
    retained.doubt(metadata(4, "shared/base", "shared/delta-4"))
    restore(retained, 4, "shared/base", "shared/delta-4")
    assert 4 not in retained.take_superfluous(4, None)
