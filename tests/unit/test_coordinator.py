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
from penstock.checkpoint.history import SubtaskCheckpoint

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
        return "abort" if made.abort(pending.id, "declined", 5) else None
    if name == "expire":
        now = pending.triggered_ms + SETTINGS.timeout_ms
        return "abort" if made.expired(now) and made.abort(pending.id, "expired", now) else None
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
            over = not made.pending
            outcome = happen(made, pending, event)
            if event[0].startswith("ack") and not over:
                acknowledged.add(event[1])
            if outcome is not None:
                outcomes.append(outcome)
            if outcome == "write":
                assert acknowledged == set(range(subtasks))
            if outcome in ("complete", "abort"):
                assert not made.pending and not over
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
            made.abort(pending.id, "x", turn)
        elif turn % 3 == 1:
            assert made.attempt_ended(turn) == [pending.id]
            made.attempt_started(turn, 0)
        else:
            made.acknowledge(pending.id, 0, snapshot())
            made.completed(pending.id, turn)
    assert ids == list(range(17, 23))


def test_messages_of_an_earlier_checkpoint_change_nothing():
    made = coordinator(1)
    first = made.trigger(0)
    made.abort(first.id, "x", 1)
    second = made.trigger(1)
    assert not made.acknowledge(first.id, 0, snapshot())
    assert not made.abort(first.id, "again", 1)
    assert not made.completed(first.id, 2)
    assert made.pending == {second.id: second} and made.confirmed == 0


# --- when -------------------------------------------------------------------------------------


def test_checkpoints_are_due_at_the_interval_and_one_at_a_time():
    made = coordinator(1)
    assert made.next_wakeup_ms() == 1000
    assert not made.due(999) and made.due(1000)
    pending = made.trigger(1000)
    assert not made.due(5000)
    assert made.next_wakeup_ms() == 1500
    assert not made.expired(1499) and made.expired(1500) == [pending.id]
    made.abort(pending.id, "expired", 1500)
    assert made.next_wakeup_ms() == 2000
    assert made.due(2000)


def test_without_an_interval_none_is_due():
    made = coordinator(1, settings=CheckpointSettings())
    assert made.next_wakeup_ms() is None
    assert not made.due(10**12)
    assert made.trigger(5).id == 1


def test_between_two_attempts_none_is_due():
    made = coordinator(1)
    assert made.attempt_ended(9) == []
    assert made.next_wakeup_ms() is None and not made.due(10**12)
    made.attempt_started(5000, confirmed=3)
    assert made.confirmed == 3
    assert made.next_wakeup_ms() == 6000


def test_what_was_under_way_when_an_attempt_ended_is_undecided():
    made = coordinator(2)
    pending = made.trigger(0)
    assert made.attempt_ended(9) == [pending.id]
    assert not made.acknowledge(pending.id, 0, snapshot())
    assert made.counts.failed == 1
    assert made.attempt_ended(9) == []


def test_counts_tell_how_the_last_one_went():
    made = coordinator(2)
    pending = made.trigger(100)
    made.acknowledge(pending.id, 0, snapshot(30))
    made.acknowledge(pending.id, 1, snapshot(12))
    made.completed(pending.id, 170)
    made.abort(made.trigger(200).id, "no space", 210)
    counts = made.counts
    assert (counts.last_duration_ms, counts.last_size) == (70, 42)
    assert (counts.completed, counts.failed, counts.last_failure) == (1, 1, "no space")


# --- pause, concurrency, failures that are borne ----------------------------------------------


def complete(made, pending, now):
    made.acknowledge(pending.id, 0, snapshot())
    assert made.completed(pending.id, now)


def test_a_pause_is_kept_after_the_end_of_a_checkpoint_however_it_ended():
    made = coordinator(1, settings=CheckpointSettings(100, timeout_ms=500, min_pause_ms=70))
    complete(made, made.trigger(100), 150)
    assert made.next_wakeup_ms() == 220, "not at 200: the pause is longer"
    assert not made.due(219) and made.due(220)
    made.abort(made.trigger(220).id, "x", 230)
    assert made.next_wakeup_ms() == 320, "the interval is longer than what is left of the pause"


def test_as_many_are_under_way_as_allowed():
    made = coordinator(1, settings=CheckpointSettings(100, timeout_ms=1000, max_concurrent=2))
    first, second = made.trigger(100), made.trigger(200)
    assert not made.due(300), "two are under way"
    assert made.next_wakeup_ms() == 1100, "the first expires"
    made.abort(first.id, "x", 310)
    assert made.due(310)
    assert made.expired(1200) == [second.id]


def test_a_pause_allows_one_at_a_time():
    settings = CheckpointSettings(100, max_concurrent=3, min_pause_ms=1)
    made = coordinator(1, settings=settings)
    made.trigger(100)
    assert not made.due(10_000)


def test_a_complete_checkpoint_makes_older_ones_pointless():
    made = coordinator(1, settings=CheckpointSettings(100, max_concurrent=3))
    first, second, third = (made.trigger(now) for now in (100, 200, 300))
    complete(made, second, 350)
    assert made.subsumed() == [first.id]
    assert made.confirmed == second.id
    made.abort(first.id, "subsumed", 350, counts=False)
    complete(made, third, 360)
    assert made.subsumed() == [] and not made.pending


def test_what_a_checkpoint_under_way_may_build_on_stays():
    made = coordinator(1, settings=CheckpointSettings(100, max_concurrent=3))
    complete(made, made.trigger(0), 10)
    second, third = made.trigger(100), made.trigger(200)
    complete(made, second, 210)
    # The third was triggered when the first was the newest: subtasks may build on either.
    assert third.base == 1 and made.needed() == 1
    references = {1: segments("a"), 2: segments("b")}
    assert unreferenced(references, 1, made.needed()) == {}
    complete(made, third, 220)
    assert made.needed() is None
    assert unreferenced(references, 1, made.needed()) == {1: segments("a")}


@pytest.mark.parametrize("tolerable", [0, 2, None])
def test_the_job_bears_so_many_failures_in_a_row(tolerable):
    made = coordinator(1, settings=CheckpointSettings(100, tolerable_failures=tolerable))

    def fail(times, counts=True):
        for _ in range(times):
            made.abort(made.trigger(0).id, "x", 1, counts)

    fail(5, counts=False)
    assert not made.too_many_failures()
    fail(tolerable or 0)
    assert not made.too_many_failures()
    complete(made, made.trigger(0), 1)
    fail(tolerable or 0)
    assert not made.too_many_failures(), "one in between was complete"
    fail(1)
    assert made.too_many_failures() == (tolerable is not None)


@pytest.mark.parametrize("most", [1, 2, 3])
def test_whatever_the_order_only_newer_ones_complete_and_ids_grow(most):
    """Every order of triggering, completing and giving up, six events deep."""
    settings = CheckpointSettings(1, max_concurrent=most)
    for choices in itertools.product(range(4), repeat=6):
        made, confirmed = coordinator(1, settings=settings), 0
        for now, choice in enumerate(choices, start=1):
            under_way = list(made.pending)
            if choice == 0:
                if made.due(now):
                    assert made.trigger(now).id > max(under_way, default=confirmed)
            elif choice == 3:
                if under_way:
                    assert made.abort(under_way[-1], "x", now)
            elif len(under_way) >= choice:
                complete(made, made.pending[under_way[choice - 1]], now)
                assert made.confirmed > confirmed
                confirmed = made.confirmed
                for older in made.subsumed():
                    made.abort(older, "subsumed", now, counts=False)
            assert made.confirmed == confirmed
            assert len(made.pending) <= most
            assert all(checkpoint > confirmed for checkpoint in made.pending)
        ended = made.counts.completed + made.counts.failed
        assert ended + len(made.pending) == made.trigger(99).id - 1


def test_the_history_tells_of_subtasks_reasons_and_what_is_under_way():
    made = coordinator(2, settings=CheckpointSettings(100, max_concurrent=2))
    first = made.trigger(100, wall_ms=77_000, manual=True)
    made.acknowledge(
        first.id, 0, SubtaskSnapshot(False, sync_ns=2_000_000, async_ns=3_000_000, size=5)
    )
    made.abort(first.id, "no space", 150)
    second = made.trigger(200)
    made.acknowledge(second.id, 1, SubtaskSnapshot(False, alignment_ns=4_000_000))
    failed, running = made.history(260)
    assert (failed.id, failed.status.name, failed.reason) == (1, "FAILED", "no space")
    assert (failed.triggered_ms, failed.manual, failed.duration_ms) == (77_000, True, 50)
    assert failed.subtasks == {0: SubtaskCheckpoint(2.0, 3.0, 0.0, 0, 5)}
    assert (failed.incremental_size, failed.state_size) == (5, 0)
    assert (running.id, running.status.name, running.duration_ms) == (2, "IN_PROGRESS", 60)
    assert running.subtasks[1].alignment_ms == 4.0


def test_the_history_is_bounded():
    made = coordinator(1)
    for now in range(50):
        made.abort(made.trigger(now).id, "x", now)
    assert [record.id for record in made.history(50)] == list(range(41, 51))
    assert made.counts.failed == 50


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
