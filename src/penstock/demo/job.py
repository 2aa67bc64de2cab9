"""The demo's program: the UPI job, with its late records on the side."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from typing import Any

from penstock.common import Configuration, Duration, Time, WatermarkStrategy
from penstock.datastream import (
    CloseableIterator,
    OutputTag,
    ProcessWindowFunction,
    StreamExecutionEnvironment,
)
from penstock.datastream.connectors.data_generator import DataGeneratorSource
from penstock.datastream.window import TumblingEventTimeWindows
from penstock.demo.payments import PAYMENTS, PER_SECOND, minute_of, payment

LATE = OutputTag("late")


class WithMinute(ProcessWindowFunction[Any, Any, str, Any]):
    """Says which minute a count is of."""

    def process(
        self, key: str, context: ProcessWindowFunction.Context[Any], elements: Iterable[Any]
    ) -> Iterator[tuple[str, str, int, int]]:
        for _, count, _ in elements:
            yield "minute", key, minute_of(context.window().start), count


def submit(directory: str) -> CloseableIterator:
    """Start the job; what it gives is (minute, merchant, number, count) or (late, payment)."""
    settings = {
        "parallelism.default": 2,
        "execution.checkpointing.interval": "300 ms",
        "execution.checkpointing.dir": f"file://{directory}",
        "restart-strategy.type": "fixed-delay",
        "restart-strategy.fixed-delay.delay": "500 ms",
    }
    env = StreamExecutionEnvironment.get_execution_environment(Configuration.from_dict(settings))
    strategy = WatermarkStrategy.for_bounded_out_of_orderness(
        Duration.of_seconds(5)
    ).with_timestamp_assigner(lambda line, _: json.loads(line)["ts_ms"])
    source = DataGeneratorSource(payment, PAYMENTS, PER_SECOND)
    windows = (
        env.from_source(source, strategy, "payments")
        .map(lambda line: (json.loads(line)["merchant"], 1, line))
        .key_by(lambda pair: pair[0])
        .window(TumblingEventTimeWindows.of(Time.minutes(1)))
        .side_output_late_data(LATE)
    )
    minutes = windows.reduce(lambda a, b: (a[0], a[1] + b[1], ""), WithMinute())
    late = minutes.get_side_output(LATE).map(lambda pair: ("late", json.loads(pair[2])))
    results = minutes.union(late).execute_and_collect("UPI per minute")
    assert isinstance(results, CloseableIterator)
    return results
