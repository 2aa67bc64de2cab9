"""Generators of one's own by the clock, what is counted, and assigners that raise."""

from __future__ import annotations

import pytest

from penstock.checkpoint.handles import MIN_WATERMARK
from penstock.common import Configuration, Duration, WatermarkStrategy
from penstock.common.watermark_strategy import WatermarkGenerator
from penstock.connectors.source import QueueEnumerator, Source, SourceReader
from penstock.datastream import StreamExecutionEnvironment
from penstock.errors import JobFailedError
from penstock.testing import local_environment


class Silent(Source):
    """One split and no records, without an end."""

    def create_enumerator(self, context, restored):
        return QueueEnumerator([0])

    def create_reader(self, context):
        return SilentReader()


class SilentReader(SourceReader):
    def __init__(self):
        self.splits = []

    def add_splits(self, splits):
        self.splits += splits

    def poll(self, limit):
        return [] if self.splits else None

    def snapshot(self):
        return list(self.splits)


class Ticking(WatermarkGenerator):
    """A watermark that follows the calls, not the records."""

    def __init__(self):
        self.calls = 0

    def on_event(self, value, timestamp, output):
        raise AssertionError("there are no records")

    def on_periodic_emit(self, output):
        self.calls += 1
        output.emit_watermark(self.calls)


STAMPED = WatermarkStrategy.for_generator(Ticking).with_timestamp_assigner(lambda v, _: v)


@pytest.mark.parametrize("interval_ms", [200, 30])
def test_a_periodic_generator_is_asked_at_every_interval(cluster, interval_ms):
    def build(env):
        env.from_source(Silent(), STAMPED, "silent").print()

    running = cluster(build, watermark_interval_ms=interval_ms).run()
    (task,) = running.slots[0].subtasks.values()
    before = MIN_WATERMARK
    for call in range(1, 5):
        assert task.next_wakeup_ms() == running.clock.now + interval_ms
        running.clock.now += interval_ms - 1
        running.run()
        assert task.metrics().watermark == before
        running.clock.now += 1
        running.run()
        before = task.metrics().watermark
        assert before == call


def test_the_interval_is_200_ms_unless_it_is_set():
    def interval_of(**values):
        env = StreamExecutionEnvironment(Configuration.from_dict(values))
        env.from_collection([1]).print()
        return env._assemble("job").settings.watermark_interval_ms

    assert interval_of() == 200
    assert interval_of(**{"pipeline.auto-watermark-interval": "50 ms"}) == 50


class Back(WatermarkGenerator):
    def on_event(self, value, timestamp, output):
        output.emit_watermark(timestamp)

    def on_periodic_emit(self, output):
        pass


def counts(strategy, values):
    with local_environment(seed=1) as env:
        env.set_parallelism(1)
        stream = env.from_collection(values).assign_timestamps_and_watermarks(strategy)
        results = stream.execute_and_collect()
        found = list(results)
        return found, {reading.name: reading.value for reading in results.job_client.metrics()}


def test_watermarks_that_go_back_are_counted():
    strategy = WatermarkStrategy.for_generator(Back).with_timestamp_assigner(lambda v, _: v)
    found, metrics = counts(strategy, [5, 9, 7, 8, 10])
    assert found == [5, 9, 7, 8, 10]
    assert metrics["numWatermarksIgnored"] == 2


def test_records_that_are_too_far_ahead_are_counted_and_left_out():
    strategy = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(lambda v, _: v)
    found, metrics = counts(strategy.with_max_jump(Duration.of_days(1)), [5, 10**15, 6, 10**14])
    assert found == [5, 6]
    assert metrics["numRecordsAheadOfTime"] == 2


def test_an_assigner_that_raises_is_shown_with_operator_and_record():
    strategy = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(
        lambda value, _: value["ts_ms"]
    )
    with pytest.raises(JobFailedError) as caught:
        counts(strategy, [{"ts_ms": 1}, {"ts": 2}])
    text = str(caught.value) + str(caught.value.__cause__)
    assert "Timestamps/Watermarks" in text and "{'ts': 2}" in text and "KeyError" in text
