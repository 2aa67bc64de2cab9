"""A subtask: what it reports of itself, and how it ends."""

from __future__ import annotations

from penstock.common import Duration, WatermarkStrategy
from penstock.connectors.client_sinks import CollectSink
from penstock.datastream import FlatMapFunction
from penstock.datastream.connectors.data_generator import DataGeneratorSource
from penstock.network.messages import Align

ALIGNED = (
    WatermarkStrategy.for_monotonous_timestamps()
    .with_timestamp_assigner(lambda value, _: value)
    .with_watermark_alignment("group", Duration.of_millis(1), Duration.of_millis(100))
)


def test_a_subtask_says_whether_it_waits_for_its_alignment_group(cluster):
    def build(env):
        env.from_source(DataGeneratorSource(lambda n: n, count=100), ALIGNED, "numbers").sink_to(
            CollectSink()
        )

    running = cluster(build, step_records=5)
    source = running.subtask(0)
    assert not source.metrics().aligned, "it has read nothing yet"
    running.tell(Align(running.ATTEMPT, source.id, 10))
    running.run()
    assert source.metrics().aligned
    assert not running.ended()
    running.tell(Align(running.ATTEMPT, source.id, 1_000))
    running.run()
    assert running.ended()
    assert not source.metrics().aligned, "the end of event time is later than any limit"


class Many(FlatMapFunction):
    """Emits more than fits, and notes when its generator and when the function is closed."""

    closed: list[str] = []

    def flat_map(self, value):
        try:
            yield from range(1_000)
        finally:
            self.closed.append("generator")

    def close(self):
        self.closed.append("function")


def test_a_record_that_is_half_processed_is_given_up_before_its_function_is_closed(cluster):
    def build(env):
        env.from_collection([1]).flat_map(Many()).rebalance().map(str).sink_to(CollectSink())

    Many.closed = []
    running = cluster(build, parallelism=2, share_functions=True, credits=1, buffer_records=2)
    for _ in range(10):
        running.turn(slots=[0])
    assert Many.closed == []
    running.slots[0].close()
    assert Many.closed == ["generator", "function"]
