"""Metrics and accumulators of user functions, from slots on Spark to the client."""

from __future__ import annotations

import sys
import time
from typing import Any

import cloudpickle
import pytest

from penstock.common import Accumulator, IntCounter, WatermarkStrategy
from penstock.datastream import MapFunction, RuntimeContext, StreamExecutionEnvironment
from penstock.datastream.connectors.data_generator import DataGeneratorSource

pytestmark = pytest.mark.usefixtures("session")

# Functions of this module travel by value: slots cannot import a test module.
cloudpickle.register_pickle_by_value(sys.modules[__name__])

RECORDS = 4000


class Subtasks(Accumulator[int, list[int]]):
    """A user's own."""

    def __init__(self) -> None:
        self.seen: set[int] = set()

    def add(self, value: int) -> None:
        self.seen.add(value)

    def get_local_value(self) -> list[int]:
        return sorted(self.seen)

    def reset_local(self) -> None:
        self.seen.clear()

    def merge(self, other: Subtasks) -> None:
        self.seen |= other.seen


class Watch(MapFunction):
    def open(self, runtime_context: RuntimeContext) -> None:
        group = runtime_context.get_metrics_group()
        self.seen = group.counter("seen")
        self.rate = group.meter("rate")
        group.gauge("broken", lambda: 1 // 0)
        self.subtask = runtime_context.get_index_of_this_subtask()
        self.records, self.subtasks = IntCounter(), Subtasks()
        runtime_context.add_accumulator("records", self.records)
        runtime_context.add_accumulator("subtasks", self.subtasks)

    def map(self, value: Any) -> Any:
        self.seen.inc()
        self.rate.mark_event()
        self.records.add(1)
        self.subtasks.add(self.subtask)
        return value


def test_the_client_reads_them_while_the_job_runs_and_at_its_end() -> None:
    env = StreamExecutionEnvironment.get_execution_environment().set_parallelism(2)
    source = DataGeneratorSource(lambda n: n, RECORDS, rate_per_second=1500)
    numbers = env.from_source(source, WatermarkStrategy.no_watermarks(), "numbers")
    numbers.map(Watch()).name("Watch").filter(lambda n: n < 0).print()
    client = env.execute_async("watched")
    future = client.get_job_execution_result()
    while not client.metrics() and not future.done():
        time.sleep(0.05)
    during = [m for m in client.metrics() if m.name == "seen"]
    assert {m.operator for m in during} == {"Watch"}
    assert sum(m.value for m in during) < RECORDS
    assert client.get_accumulators().result()["records"] < RECORDS
    result = future.result()
    assert result.get_all_accumulator_results() == {"records": RECORDS, "subtasks": [0, 1]}
    assert sum(m.value for m in result.metrics if m.name == "seen") == RECORDS
    assert all(m.value.rate > 0 for m in result.metrics if m.name == "rate")
    assert not [m for m in result.metrics if m.name == "broken"]
