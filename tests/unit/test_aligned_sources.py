"""A source that watermark alignment holds up: it reads nothing, and keeps nobody else waiting."""

from __future__ import annotations

import pytest

from penstock.checkpoint.handles import MAX_WATERMARK
from penstock.checkpoint.store import MEMORY, CheckpointStore
from penstock.common import Duration, WatermarkStrategy
from penstock.connectors.source import QueueEnumerator, Source, SourceReader
from penstock.datastream import KeyedProcessFunction
from penstock.network.messages import Align, Trigger

BATCH = 40
STRATEGY = (
    WatermarkStrategy.for_monotonous_timestamps()
    .with_timestamp_assigner(lambda value, _: value)
    .with_watermark_alignment("group", Duration.of_millis(10))
)


class Counting(Source):
    """1, 2, 3, ..., of which there is always more; a poll returns `BATCH` of them."""

    def create_enumerator(self, context, restored):
        return QueueEnumerator([0])

    def create_reader(self, context):
        return CountingReader()


class CountingReader(SourceReader):
    def __init__(self):
        self.last = None

    def add_splits(self, splits):
        [self.last] = splits

    def poll(self, limit):
        if self.last is None:
            return None
        first, self.last = self.last, self.last + BATCH
        return list(range(first + 1, self.last + 1))

    def snapshot(self):
        return [] if self.last is None else [self.last]


class Remind(KeyedProcessFunction):
    """A timer of the processing time with the first record."""

    def __init__(self, seen):
        self.seen = seen

    def process_element(self, value, ctx):
        self.seen.append(value)
        if value == 1:
            timers = ctx.timer_service()
            timers.register_processing_time_timer(timers.current_processing_time() + 10_000)

    def on_timer(self, timestamp, ctx):
        self.seen.append("timer")


@pytest.fixture
def held_up(cluster):
    """A job whose source is held up with most of a batch in its hands; and what its end sees."""
    seen = []

    def build(env):
        numbers = env.from_source(Counting(), STRATEGY, "numbers")
        numbers.key_by(lambda value: 0).process(Remind(seen)).print()

    running = cluster(build, store=CheckpointStore(MEMORY, "job"))
    while not seen:
        running.turn()
    assert len(seen) < BATCH
    align(running, 0)
    return running, seen


def align(running, limit):
    source = running.graph.job.vertices[0].id
    running.tell(Align(running.ATTEMPT, running.subtask(source).id, limit))


def test_what_was_read_is_processed_and_nothing_more_is_read(held_up):
    running, seen = held_up
    running.run()
    assert seen == list(range(1, BATCH + 1))
    align(running, MAX_WATERMARK)
    while len(seen) == BATCH:
        assert running.turn()


@pytest.mark.parametrize("overtakes_after_ms", [None, 0])
def test_checkpoints_go_on(held_up, overtakes_after_ms):
    running, seen = held_up
    for checkpoint in (1, 2):
        trigger = Trigger(running.ATTEMPT, checkpoint, 0, overtakes_after_ms=overtakes_after_ms)
        running.tell(trigger)
        running.run()
        assert len(running.snapshots(checkpoint)) == len(running.graph.subtasks())
    assert seen == list(range(1, BATCH + 1))


def test_timers_and_watermarks_go_on(held_up):
    running, seen = held_up
    running.run()
    running.clock.now += 10_000
    running.run()
    assert seen == [*range(1, BATCH + 1), "timer"]
    for slot in running.slots:
        for task in slot.subtasks.values():
            assert task.metrics().watermark == BATCH - 1
            assert task.metrics().records_in == BATCH
