"""A source subtask that was told that there is no split for it holds nobody back."""

from __future__ import annotations

import pytest

from penstock.common import Time, WatermarkStrategy
from penstock.connectors import Source, SourceReader, SplitEnumerator
from penstock.datastream.window import TumblingEventTimeWindows
from penstock.testing import local_environment

STAMPED = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(
    lambda value, previous: value[1]
)


class TwoSplits(Source):
    """A split for subtask 0 that never ends, and one for subtask 1, which is kept back.

    It begins with record `start`, and is handed out when subtask 1 has asked `vainly` times; None:
    never. With `waits` subtask 1 is told to wait for it.
    """

    def __init__(self, start=0, vainly=None, waits=False) -> None:
        self.start = start
        self.vainly = vainly
        self.waits = waits

    def create_enumerator(self, context, restored):
        return _Enumerator(self)

    def create_reader(self, context):
        return _Reader(context.clock)


class _Enumerator(SplitEnumerator):
    def __init__(self, source) -> None:
        self.left = {0: 0, 1: source.start}
        self.vainly = source.vainly
        self.waits = source.waits

    def next_splits(self, subtask):
        if subtask == 1 and self.vainly != 0:
            self.vainly = self.vainly and self.vainly - 1
            return []
        return [self.left.pop(subtask)] if subtask in self.left else []

    def waited_for(self, subtask):
        return self.waits

    def snapshot(self):
        return None


class _Reader(SourceReader):
    """A record every ten milliseconds, from the split's number on."""

    def __init__(self, clock) -> None:
        self.clock = clock
        self.next = None
        self.due_ms = 0

    def add_splits(self, splits) -> None:
        [self.next] = splits
        self.due_ms = self.clock.now_ms()

    def poll(self, limit):
        if self.next is None:
            return None
        if self.clock.now_ms() < self.due_ms:
            return []
        self.due_ms += 10
        self.next += 1
        return [("a", self.next)]

    def next_poll_ms(self):
        return self.due_ms

    def snapshot(self):
        return [] if self.next is None else [self.next]


def windows(env, source):
    env.set_parallelism(2)
    stamped = env.from_source(source, STAMPED, "numbers").key_by(lambda value: value[0])
    window = stamped.window(TumblingEventTimeWindows.of(Time.milliseconds(10)))
    return window.reduce(lambda one, other: (one[0], one[1] + other[1])).map(lambda sum_: sum_[1])


def sums(count):
    return [sum(range(10 * n, 10 * n + 10)) for n in range(count)]


@pytest.mark.timeout(60)
def test_a_subtask_without_a_split_does_not_hold_event_time_back() -> None:
    with local_environment() as env:
        assert windows(env, TwoSplits()).execute_and_collect(limit=5) == sums(5)


@pytest.mark.timeout(60)
def test_it_is_waited_for_again_when_it_has_a_split() -> None:
    with local_environment() as env:
        found = windows(env, TwoSplits(start=1000, vainly=3)).execute_and_collect(limit=110)
    # In whole windows from 1000 on there are the records of both.
    assert found[:100] == sums(100)
    assert found[101:] == [2 * total for total in sums(110)[101:]]


@pytest.mark.timeout(60)
def test_a_subtask_that_is_told_to_wait_for_its_split_is_waited_for() -> None:
    with local_environment() as env:
        found = windows(env, TwoSplits(vainly=3, waits=True)).execute_and_collect(limit=5)
    assert found == [2 * total for total in sums(5)]
