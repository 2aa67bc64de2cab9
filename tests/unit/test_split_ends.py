"""The end of a split: its last records are under way when its reader no longer has it."""

from __future__ import annotations

import pytest

from penstock.checkpoint.handles import MAX_WATERMARK, MIN_WATERMARK
from penstock.common import Duration, WatermarkStrategy
from penstock.common.watermark_strategy import WatermarkGenerator
from penstock.connectors.source import QueueEnumerator, Source, SourceReader
from penstock.datastream import ProcessFunction


class Splits(Source):
    """Batches of splits: `("a", times, True)` are the last records of split a."""

    timed = True

    def __init__(self, *batches):
        self.batches = list(batches)
        self.active = sorted({split for split, _, _ in batches})
        self.paused = []

    def create_enumerator(self, context, restored):
        return QueueEnumerator([0])

    def create_reader(self, context):
        self.wake = context.wake
        return SplitsReader(self)


class SplitsReader(SourceReader):
    pauses_splits = True
    added, last = False, None

    def __init__(self, source):
        self.source = source

    def add_splits(self, splits):
        self.added = True

    def poll(self, limit):
        if not self.added:
            return None
        if not self.source.batches:
            return []
        self.last, times, ends = self.source.batches.pop(0)
        if ends:
            self.source.active.remove(self.last)
        return [(f"{self.last}{at}", at) for at in times]

    def split_of_last_poll(self):
        return self.last

    def active_splits(self):
        return list(self.source.active)

    def pause_or_resume_splits(self, to_pause, to_resume):
        self.source.paused += to_pause

    def snapshot(self):
        return [0]


class EveryRecord(WatermarkGenerator):
    def on_event(self, value, timestamp, output):
        output.emit_watermark(timestamp)

    def on_periodic_emit(self, output):
        pass


class Seen(ProcessFunction):
    def __init__(self, seen):
        self.seen = seen

    def process_element(self, value, ctx):
        self.seen.append((value, ctx.timer_service().current_watermark()))
        yield value


PUNCTUATED = WatermarkStrategy.for_generator(EveryRecord)
PERIODIC = WatermarkStrategy.for_monotonous_timestamps()


@pytest.fixture
def start(cluster):
    """Starts a job that reads the source; returns it, and what a function sees."""

    def make(source, strategy):
        seen = []

        def build(env):
            env.from_source(source, strategy, "splits").process(Seen(seen)).print()

        return cluster(build), seen

    return make


IN_ORDER = [
    ("b500", MIN_WATERMARK),
    ("a10", MIN_WATERMARK),
    ("a20", 10),
    ("a30", 20),
    ("b510", 30),
]


def two_splits():
    return Splits(("b", [500], False), ("a", [10, 20, 30], True), ("b", [510], False))


def test_the_last_records_of_a_split_hold_event_time_until_they_are_processed(start):
    running, seen = start(two_splits(), PUNCTUATED)
    running.run()
    assert seen == IN_ORDER
    (task,) = running.slots[0].subtasks.values()
    assert task.metrics().watermark == 510


def test_alignment_in_the_middle_of_the_last_records_forgets_and_pauses_nothing(start):
    source = two_splits()
    running, seen = start(source, PUNCTUATED.with_watermark_alignment("g", Duration.of_seconds(9)))
    (task,) = running.slots[0].subtasks.values()
    while ("a10", MIN_WATERMARK) not in seen:
        assert running.turn()
    task.align(400)
    task.align(5)
    task.align(MAX_WATERMARK)
    running.run()
    assert seen == IN_ORDER
    assert source.paused == ["b"]


@pytest.mark.parametrize("strategy", [PUNCTUATED, PERIODIC])
def test_event_time_comes_to_the_end_of_the_only_split(start, strategy):
    running, _ = start(Splits(("a", [10, 21], False), ("a", [30, 41], True)), strategy)
    running.run()
    running.clock.now += 200
    running.run()
    (task,) = running.slots[0].subtasks.values()
    assert task.metrics().watermark == (41 if strategy is PUNCTUATED else 40)
    assert not running.ended()
