"""Start-up: what Penstock adds to the time that Spark takes to launch two tasks.

On a warm session: from `execute()` to the first record in the sink, against a bare barrier job
from its launch to the first line of user code. Ten rounds in turn, medians.
"""

import statistics
import tempfile
import time
from collections.abc import Iterable, Iterator
from typing import Any

from pyspark.sql import SparkSession

from bench.common import result_row, share_with_workers
from bench.data import birth_line
from bench.jobs import PARALLELISM, Count, environment, keyed_count
from bench.stamps import mark, notes
from penstock.common import WatermarkStrategy
from penstock.connectors import Sink, SinkWriter
from penstock.datastream.connectors.data_generator import DataGeneratorSource

ROUNDS = 10


class MarkingWriter(SinkWriter):
    def __init__(self, folder: str) -> None:
        self._folder = folder

    def write(self, value: Any) -> None:
        mark(self._folder, "out")


class MarkingSink(Sink):
    """Notes when each record arrived."""

    def __init__(self, folder: str) -> None:
        self._folder = folder

    def create_writer(self, context: Any) -> SinkWriter:
        return MarkingWriter(self._folder)


def penstock() -> float:
    """Milliseconds from `execute()` to the first record out."""
    with tempfile.TemporaryDirectory() as folder:
        env = environment(folder)
        source = DataGeneratorSource(birth_line, 10, None)
        stream = env.from_source(source, WatermarkStrategy.no_watermarks(), "payments")
        keyed_count(stream, Count(folder), MarkingSink(folder))
        called = time.time_ns()
        env.execute("start-up")
        return (min(moment for [moment] in notes(folder, "out")) - called) / 1e6


def now(_: Iterable[int]) -> Iterator[int]:
    yield time.time_ns()


def bare(spark: SparkSession) -> float:
    """Milliseconds from the launch of a barrier job to its first code running."""
    called = time.time_ns()
    numbers = spark.sparkContext.parallelize(range(PARALLELISM), PARALLELISM)
    moments = numbers.barrier().mapPartitions(now).collect()
    return (min(moments) - called) / 1e6


def main() -> None:
    share_with_workers()
    penstock()  # makes the session
    spark = SparkSession.builder.getOrCreate()
    bare(spark)
    rounds = [(penstock(), bare(spark)) for _ in range(ROUNDS)]
    ours, sparks = (statistics.median(column) for column in zip(*rounds, strict=True))
    details = f"first record after {ours:.0f} ms, bare barrier job after {sparks:.0f} ms"
    print(details)
    print(result_row("startup", f"{ours - sparks:+.0f} ms, {ours / sparks:.1f} x", details))


if __name__ == "__main__":
    main()
