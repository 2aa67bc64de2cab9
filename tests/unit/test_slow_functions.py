"""A function that was fast becomes slow: steps end when their time is over, in the middle too."""

from __future__ import annotations

import sys
import threading
from operator import length_hint

import pytest
from patience import until

from penstock.checkpoint.store import MEMORY, CheckpointStore
from penstock.common import Time
from penstock.datastream import AsyncDataStream, AsyncFunction, KeyedProcessFunction
from penstock.network.messages import Acknowledge, Trigger
from penstock.runtime.async_queue import AsyncQueue
from penstock.runtime.slice import Slice
from penstock.runtime.step_watch import StepWatch, StepWatcher

FAST = 1000
"""So many records are fast; then a step takes as many as it ever does."""
SLOW = 20


# --- the slice ------------------------------------------------------------------------------------


@pytest.fixture
def restless():
    """Threads take turns as often as Python lets them."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(before)


@pytest.mark.usefixtures("restless")
def test_a_slice_that_another_thread_ends_loses_and_repeats_nothing():
    records = list(range(20_000))
    for _ in range(300):
        part, begun = Slice(records), []
        thread = threading.Thread(target=part.end)
        thread.start()
        for value in part.cursor:
            begun.append(value)  # noqa: PERF402
        # The loop looks at once: what it was not given must be there when it ends.
        assert begun + part.back == records
        thread.join()
        assert begun + part.back == records


def test_a_slice_that_was_ended_twice_is_as_if_ended_once():
    part = Slice([1, 2, 3])
    assert next(part.cursor) == 1
    part.end()
    part.end()
    assert part.back == [2, 3] and list(part.cursor) == []


# --- the watch ------------------------------------------------------------------------------------


def test_only_a_step_that_is_seen_twice_is_ended():
    watch, part = StepWatch(), Slice([1, 2])
    watch.begin(part)
    watch.look()
    assert part.back == []
    watch.look()
    assert part.back == [1, 2]


def test_a_step_that_is_over_or_another_one_is_left_alone():
    watch, first, second = StepWatch(), Slice([1]), Slice([2])
    watch.begin(first)
    watch.look()
    watch.end()
    watch.look()
    watch.begin(second)
    watch.look()
    assert first.back == second.back == []


# --- steps ----------------------------------------------------------------------------------------


def watch_of(running):
    return running.slots[0]._environment.watch


def steps(running, seen):
    """Run to the end; what was seen in each turn."""
    found = []
    while True:
        before = len(seen)
        progressed = running.turn()
        found.append(seen[before:])
        if not progressed:
            return found


@pytest.mark.parametrize("chained", [True, False])
def test_a_step_ends_with_the_record_at_which_its_time_is_over(cluster, chained):
    seen = []

    def slow(n):
        seen.append(n)
        if n >= FAST:
            part = running.subtask(0 if chained else 1).stepping._intake.under_way
            until(lambda: length_hint(part.cursor) == 0, "the thread ends the slice")
        return n

    def build(env):
        numbers = env.from_collection(range(FAST + SLOW))
        (numbers if chained else numbers.rebalance()).map(slow).print()

    running = cluster(build)
    watcher = StepWatcher(watch_of(running))
    watcher.start()
    try:
        turns = steps(running, seen)
    finally:
        watcher.close()
    assert seen == list(range(FAST + SLOW))
    assert max(len(turn) for turn in turns) > 200
    assert max(sum(n >= FAST for n in turn) for turn in turns) == 1


class Slow(KeyedProcessFunction):
    """Sets a timer with the first record, which comes due while a later one takes its time."""

    def __init__(self, took_long):
        self._took_long = took_long
        self.seen = []

    def process_element(self, value, ctx):
        self.seen.append(value)
        if value == 0:
            now = ctx.timer_service().current_processing_time()
            ctx.timer_service().register_processing_time_timer(now + 10)
        self._took_long(value)

    def on_timer(self, timestamp, ctx):
        self.seen.append("timer")


def test_timers_do_not_wait_for_the_batch_at_hand(cluster):
    def took_long(value):
        if value == FAST:
            running.clock.now += 1000
            watch_of(running).look()
            watch_of(running).look()

    function = Slow(took_long)
    running = cluster(
        lambda env: (
            env.from_collection(range(FAST + SLOW)).key_by(lambda n: 0).process(function).print()
        )
    )
    running.run()
    assert function.seen[FAST : FAST + 3] == [FAST, "timer", FAST + 1]
    assert function.seen[-1] == FAST + SLOW - 1


def test_an_unaligned_checkpoint_does_not_wait_for_the_batch_at_hand(cluster):
    seen = []

    def slow(n):
        seen.append(n)
        if n == FAST:
            watch_of(running).look()
            watch_of(running).look()
        return n

    store = CheckpointStore(MEMORY, "job")
    running = cluster(
        lambda env: env.from_collection(range(FAST + SLOW)).rebalance().map(slow).print(),
        store=store,
    )
    while FAST not in seen:
        running.turn()
    assert seen[-1] == FAST
    running.tell(Trigger(running.ATTEMPT, 1, 0, overtakes_after_ms=0))
    while not running.of(Acknowledge):
        running.turn()
    assert seen[-1] < FAST + SLOW
    running.run()
    assert len(running.snapshots(1)) == 2
    assert seen == list(range(FAST + SLOW))


def test_an_aligned_checkpoint_waits_for_the_batch_that_its_source_has_read_and_no_other(cluster):
    """The reader is behind that batch already: there is no position in its middle."""
    seen = []

    def slow(n):
        seen.append(n)
        if n == FAST:
            watch_of(running).look()
            watch_of(running).look()
        return n

    store = CheckpointStore(MEMORY, "job")
    running = cluster(lambda env: env.from_collection(range(9999)).map(slow).print(), store=store)
    while FAST not in seen:
        running.turn()
    assert seen[-1] == FAST
    rest = running.subtask(0).stepping._intake.rest()
    assert rest[0] == FAST + 1
    running.tell(Trigger(running.ATTEMPT, 1, 0))
    while not running.of(Acknowledge):
        running.turn()
    assert seen[-1] == rest[-1] < 9998


# --- asynchronous calls ---------------------------------------------------------------------------


def test_what_could_not_go_on_goes_on_later_and_is_in_a_checkpoint():
    queue = AsyncQueue(ordered=True)
    calls = [queue.add(name, None) for name in "abc"]
    for call in calls:
        call.end([])
    taken = queue.take()
    queue.put_back(taken[1:])
    assert queue.size == 2 and queue.has_ready()
    assert list(queue.waiting()) == [("b", None), ("c", None)]
    assert [value for _, _, value in queue.take()] == ["b", "c"]


class Echo(AsyncFunction):
    async def async_invoke(self, value):
        return [value]


def test_results_of_calls_do_not_keep_a_slot_either(cluster):
    seen = []

    def slow(n):
        seen.append(n)
        watch_of(running).look()
        watch_of(running).look()
        return n

    def build(env):
        numbers = env.from_collection(range(50))
        AsyncDataStream.ordered_wait(numbers, Echo(), Time.seconds(9)).map(slow).print()

    running = cluster(build)
    turns = steps(running, seen)
    assert seen == list(range(50))
    assert max(map(len, turns)) == 1
