"""Timers: one per key and timestamp, in order, and part of the state."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.state.kinds import KeyContext
from penstock.state.timers import TimerQueue


class Timers:
    """A queue on a table of a backend, as an operator has it."""

    def __init__(self, *deltas):
        self.backend = self.make(KeyContext(), 128)
        for blocks in deltas:
            self.backend.restore(blocks)
        self.queue = TimerQueue(self.backend.table("timers", "timers"))

    def fire(self, until):
        fired = []
        while (due := self.queue.pop_due(until)) is not None:
            fired.append(due)
        return fired


@pytest.fixture(scope="module", autouse=True)
def on_every_backend(make_state):
    Timers.make = staticmethod(make_state)


def test_timers_fire_in_the_order_of_their_timestamps():
    timers = Timers()
    for timestamp in (30, 10, 20):
        timers.queue.register("a", timestamp)
    assert timers.queue.next_timestamp() == 10
    assert timers.fire(20) == [(10, "a"), (20, "a")]
    assert timers.queue.next_timestamp() == 30


def test_a_timer_is_due_at_its_timestamp_and_not_before():
    timers = Timers()
    timers.queue.register("a", 10)
    assert timers.fire(9) == []
    assert timers.fire(10) == [(10, "a")]
    assert timers.fire(10) == []


def test_a_timer_registered_twice_fires_once():
    timers = Timers()
    timers.queue.register("a", 10)
    timers.queue.register("a", 10)
    timers.queue.register("b", 10)
    assert timers.fire(10) == [(10, "a"), (10, "b")]


def test_a_deleted_timer_does_not_fire():
    timers = Timers()
    timers.queue.register("a", 10)
    timers.queue.register("a", 20)
    timers.queue.delete("a", 10)
    timers.queue.delete("a", 99)
    timers.queue.delete("nobody", 10)
    assert timers.queue.next_timestamp() == 20
    assert timers.fire(100) == [(20, "a")]


def test_a_timer_deleted_and_registered_again_fires_once():
    timers = Timers()
    timers.queue.register("a", 10)
    timers.queue.delete("a", 10)
    timers.queue.register("a", 10)
    assert timers.fire(10) == [(10, "a")]


def test_a_timer_may_be_registered_again_while_it_fires():
    timers = Timers()
    timers.queue.register("a", 10)
    assert timers.queue.pop_due(50) == (10, "a")
    timers.queue.register("a", 10)
    timers.queue.register("a", 40)
    timers.queue.register("a", 60)
    assert timers.fire(50) == [(10, "a"), (40, "a")]
    assert timers.queue.next_timestamp() == 60


def test_keys_without_an_order_do_not_matter():
    timers = Timers()
    for key in (None, "a", 1, ("x",), 2.5):
        timers.queue.register(key, 10)
    assert [key for _, key in timers.fire(10)] == [None, "a", 1, ("x",), 2.5]


def test_timers_are_restored():
    timers = Timers()
    for timestamp in (30, 10, 20):
        timers.queue.register("a", timestamp)
    timers.queue.register("b", 15)
    base = timers.backend.cut(1, full=True)
    timers.backend.confirm(1)
    timers.queue.delete("b", 15)
    assert timers.queue.pop_due(10) == (10, "a")
    timers.queue.register("c", 5)
    restored = Timers(base, timers.backend.cut(2, full=False))
    assert restored.fire(100) == [(5, "c"), (20, "a"), (30, "a")]
    assert Timers(base).fire(100) == [(10, "a"), (15, "b"), (20, "a"), (30, "a")]


def test_memory_follows_the_timers_that_there_are():
    timers = Timers()
    for timestamp in range(100_000):
        timers.queue.register("a", timestamp + 1000)
        timers.queue.delete("a", timestamp + 999)
    assert len(timers.queue._heap) < 5000
    assert timers.fire(10**9) == [(100_999, "a")]


def test_sweeping_keeps_what_was_registered_again_once_and_in_order():
    timers = Timers()
    for timestamp in range(3000):
        timers.queue.register("a", timestamp)
    for timestamp in range(3000):
        timers.queue.delete("a", timestamp)
        if timestamp % 10 == 0:
            timers.queue.register("a", timestamp)
    timers.queue.register("b", 20)
    assert timers.fire(40) == [(0, "a"), (10, "a"), (20, "a"), (20, "b"), (30, "a"), (40, "a")]
    assert len(timers.fire(10**9)) == 295


def test_a_lone_timer_takes_no_set():
    timers = Timers()
    timers.queue.register("a", 10)
    entries = timers.backend.table("timers", "timers").entries
    assert entries == {"a": 10}
    timers.queue.register("a", 20)
    assert entries == {"a": {10, 20}}
    timers.fire(100)
    assert entries == {}


moves = st.lists(
    st.tuples(st.sampled_from(["register", "delete"]), st.integers(0, 3), st.integers(0, 20))
    | st.tuples(st.just("fire"), st.integers(0, 20))
    | st.just(("checkpoint",)),
    max_size=60,
)


@given(moves)
def test_timers_behave_as_a_sorted_set(script):
    timers, model = Timers(), set()
    deltas, checkpoint = [], 0
    for move in script:
        match move:
            case ("register", key, timestamp):
                timers.queue.register(key, timestamp)
                model.add((timestamp, key))
            case ("delete", key, timestamp):
                timers.queue.delete(key, timestamp)
                model.discard((timestamp, key))
            case ("fire", until):
                fired = timers.fire(until)
                assert sorted(fired) == sorted(t for t in model if t[0] <= until)
                assert [t for t, _ in fired] == sorted(t for t, _ in fired)
                model = {t for t in model if t[0] > until}
            case ("checkpoint",):
                checkpoint += 1
                deltas.append(timers.backend.cut(checkpoint, full=False))
                timers.backend.confirm(checkpoint)
                assert sorted(Timers(*deltas).fire(100)) == sorted(model)
        assert timers.queue.next_timestamp() == min((t for t, _ in model), default=None)
