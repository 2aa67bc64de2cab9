"""The coordinator, by enumeration: whatever happens in whatever order, it decides the same way."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.checkpoint.coordinator import (
    CheckpointCoordinator,
    CheckpointSettings,
    unreferenced,
)
from penstock.checkpoint.handles import SubtaskSnapshot

SETTINGS = CheckpointSettings(interval_ms=1000, timeout_ms=500)


def snapshot(size=1):
    return SubtaskSnapshot(False, size=size)


def coordinator(subtasks=2, first_id=1, settings=SETTINGS):
    made = CheckpointCoordinator(settings, range(subtasks), first_id)
    made.attempt_started(0, 0)
    return made


# --- every order of events --------------------------------------------------------------------


def events(subtasks):
    return [
        *((name, subtask) for name in ("ack", "ack again") for subtask in range(subtasks)),
        ("decline", 0),
        ("expire", None),
        ("written", None),
        ("stale ack", 0),
    ]


def happen(made, pending, event):
    """Let `event` happen to the checkpoint, as a JobMaster passes it on; what it led to."""
    name, subtask = event
    if name in ("ack", "ack again"):
        return "write" if made.acknowledge(pending.id, subtask, snapshot()) else None
    if name == "stale ack":
        assert not made.acknowledge(pending.id - 1, subtask, snapshot())
        assert not made.acknowledge(pending.id + 1, subtask, snapshot())
        return None
    if name == "decline":
        return "abort" if made.abort(pending.id, "declined") else None
    if name == "expire":
        now = pending.triggered_ms + SETTINGS.timeout_ms
        return "abort" if made.expired(now) and made.abort(pending.id, "expired") else None
    return "complete" if pending.writing and made.completed(pending.id, 10) else None


@pytest.mark.parametrize("subtasks", [2, 3])
def test_a_checkpoint_completes_once_and_only_when_all_acknowledged(subtasks):
    possible = events(subtasks)
    orders = itertools.permutations(possible, 4 if subtasks == 3 else 5)
    seen = set()
    for order in orders:
        made = coordinator(subtasks)
        pending = made.trigger(0)
        acknowledged, outcomes = set(), []
        for event in order:
            over = made.pending is None
            outcome = happen(made, pending, event)
            if event[0].startswith("ack") and not over:
                acknowledged.add(event[1])
            if outcome is not None:
                outcomes.append(outcome)
            if outcome == "write":
                assert acknowledged == set(range(subtasks))
            if outcome in ("complete", "abort"):
                assert made.pending is None and not over
        assert outcomes in (
            [],
            ["write"],
            ["write", "complete"],
            ["write", "abort"],
            ["abort"],
        )
        completed = "complete" in outcomes
        assert made.confirmed == (pending.id if completed else 0)
        assert (made.counts.completed, made.counts.failed) == (
            int(completed),
            int("abort" in outcomes),
        )
        seen.add(tuple(outcomes))
    assert len(seen) >= 4


def test_while_the_metadata_is_written_a_checkpoint_does_not_expire():
    made = coordinator(1)
    pending = made.trigger(0)
    assert made.acknowledge(pending.id, 0, snapshot())
    assert not made.expired(10**9)
    assert made.next_wakeup_ms() is None, "a loop that waits for the write would spin"


def test_an_acknowledgement_of_somebody_else_does_not_count():
    made = coordinator(2)
    pending = made.trigger(0)
    assert not made.acknowledge(pending.id, 99, snapshot())
    assert pending.waiting == {0, 1}


def test_ids_are_never_used_again():
    made, ids = coordinator(1, first_id=17), []
    for turn in range(6):
        pending = made.trigger(turn)
        ids.append(pending.id)
        if turn % 3 == 0:
            made.abort(pending.id, "x")
        elif turn % 3 == 1:
            assert made.attempt_ended() == pending.id
            made.attempt_started(turn, 0)
        else:
            made.acknowledge(pending.id, 0, snapshot())
            made.completed(pending.id, turn)
    assert ids == list(range(17, 23))


def test_messages_of_an_earlier_checkpoint_change_nothing():
    made = coordinator(1)
    first = made.trigger(0)
    made.abort(first.id, "x")
    second = made.trigger(1)
    assert not made.acknowledge(first.id, 0, snapshot())
    assert not made.abort(first.id, "again")
    assert not made.completed(first.id, 2)
    assert made.pending is second and made.confirmed == 0


# --- when -------------------------------------------------------------------------------------


def test_checkpoints_are_due_at_the_interval_and_one_at_a_time():
    made = coordinator(1)
    assert made.next_wakeup_ms() == 1000
    assert not made.due(999) and made.due(1000)
    pending = made.trigger(1000)
    assert not made.due(5000)
    assert made.next_wakeup_ms() == 1500
    assert not made.expired(1499) and made.expired(1500)
    made.abort(pending.id, "expired")
    assert made.next_wakeup_ms() == 2000
    assert made.due(2000)


def test_without_an_interval_none_is_due():
    made = coordinator(1, settings=CheckpointSettings())
    assert made.next_wakeup_ms() is None
    assert not made.due(10**12)
    assert made.trigger(5).id == 1


def test_between_two_attempts_none_is_due():
    made = coordinator(1)
    assert made.attempt_ended() is None
    assert made.next_wakeup_ms() is None and not made.due(10**12)
    made.attempt_started(5000, confirmed=3)
    assert made.confirmed == 3
    assert made.next_wakeup_ms() == 6000


def test_what_was_under_way_when_an_attempt_ended_is_undecided():
    made = coordinator(2)
    pending = made.trigger(0)
    assert made.attempt_ended() == pending.id
    assert not made.acknowledge(pending.id, 0, snapshot())
    assert made.counts.failed == 1
    assert made.attempt_ended() is None


def test_counts_tell_how_the_last_one_went():
    made = coordinator(2)
    pending = made.trigger(100)
    made.acknowledge(pending.id, 0, snapshot(30))
    made.acknowledge(pending.id, 1, snapshot(12))
    made.completed(pending.id, 170)
    made.abort(made.trigger(200).id, "no space")
    counts = made.counts
    assert (counts.last_duration_ms, counts.last_size) == (70, 42)
    assert (counts.completed, counts.failed, counts.last_failure) == (1, 1, "no space")


# --- what may go ------------------------------------------------------------------------------


def segments(*names):
    return frozenset(names)


def test_nothing_goes_while_all_are_retained():
    assert unreferenced({1: segments("a")}, 1) == {}
    assert unreferenced({}, 1) == {}


def test_what_a_retained_checkpoint_refers_to_stays():
    references = {1: segments("a", "b"), 2: segments("b", "c"), 3: segments("c", "d")}
    assert unreferenced(references, 1) == {1: segments("a", "b"), 2: segments()}
    assert unreferenced(references, 2) == {1: segments("a")}


@given(
    st.dictionaries(
        st.integers(1, 30), st.frozensets(st.sampled_from("abcdefgh"), max_size=5), max_size=6
    ),
    st.integers(1, 4),
)
def test_a_segment_goes_once_and_only_when_nobody_needs_it(references, retained):
    gone = unreferenced(references, retained)
    kept = set(references) - set(gone)
    assert len(kept) == min(retained, len(references))
    assert not kept or not gone or min(kept) > max(gone)
    needed = frozenset().union(*(references[checkpoint] for checkpoint in kept))
    deleted = [name for names in gone.values() for name in names]
    assert len(deleted) == len(set(deleted))
    everything = frozenset().union(*references.values())
    assert set(deleted) == everything - needed
