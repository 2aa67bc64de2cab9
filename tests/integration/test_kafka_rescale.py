"""A job from Kafka to Kafka changes its parallelism: splits move, transactions are settled."""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from job_parts import Count, environment, running
from kafka_parts import exactly_once, read_all, source, values, write
from patience import PATIENCE, until
from pyspark.sql import SparkSession

from penstock.common import WatermarkStrategy
from penstock.testing.kafka import KafkaBroker

pytestmark = pytest.mark.full("Kafka")

NUMBERS, KEYS, PARTITIONS = 3_000, 11, 3


def key_of(number: int) -> int:
    return number % KEYS


def test_every_number_is_counted_once(
    broker: KafkaBroker, topic: Callable[[int], str], tmp_path: Path, session: SparkSession
) -> None:
    numbers, out = topic(PARTITIONS), topic(1)

    def feed() -> None:
        for start in range(0, NUMBERS, 20):
            write(broker, numbers, [str(n) for n in range(start, start + 20)])

    env = environment(1, tmp_path / "checkpoints", "200 ms")
    stream = env.from_source(
        source(broker, numbers).build(), WatermarkStrategy.no_watermarks(), "numbers"
    )
    counted = stream.map(int).key_by(key_of).process(Count())
    lines = counted.map(lambda one: f"{one[0]} {one[1]} {one[2]}")
    lines.sink_to(exactly_once(broker, out, out)).uid("kafka")

    feeder = threading.Thread(target=feed, daemon=True)
    feeder.start()
    job = env.execute_async("rescaled")
    try:
        running(job)
        for parallelism in (2, 3, 1):
            job.rescale(parallelism).result(PATIENCE)
            seen = job.progress().completed_checkpoints
            until(lambda seen=seen: job.progress().completed_checkpoints > seen, "a checkpoint")
        feeder.join()
        until(lambda: len(_written(broker, out)) >= NUMBERS, "all is there")
        assert job.progress().restarts == 0
    finally:
        job.cancel().result(PATIENCE)
    found = _written(broker, out)
    assert sorted(number for _, _, number in found) == list(range(NUMBERS))
    for key in range(KEYS):
        counts = [count for one, count, _ in found if one == key]
        assert counts == list(range(1, len(counts) + 1)), "in order, too"


def _written(broker: KafkaBroker, topic: str) -> list[tuple[Any, ...]]:
    return [tuple(map(int, value.split())) for value in values(read_all(broker, topic))]
