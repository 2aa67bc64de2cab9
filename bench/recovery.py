"""Recovery: how long the stream of results is interrupted by a failure.

A small keyed job runs at a steady rate with a restart delay of zero. From the moment a function
raises (restart in place), or a slot is killed with -9 (restart by relaunch), to the next result in
a sink. For a relaunch, what Spark itself needs to launch is measured next to it and taken off.
"""

import os
import signal
import statistics
import tempfile
import time
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession

from bench.common import result_row, share_with_workers
from bench.data import birth_line
from bench.jobs import Count, environment, keyed_count
from bench.stamps import Latencies, mark, notes
from bench.startup import bare
from penstock.common import Configuration, WatermarkStrategy
from penstock.connectors import Sink, SinkWriter
from penstock.datastream.connectors.data_generator import DataGeneratorSource

ROUNDS = 5
RATE = 200
SECONDS = 8
NO_DELAY = {
    "restart-strategy.type": "fixed-delay",
    "restart-strategy.fixed-delay.delay": "0 ms",
    "restart-strategy.fixed-delay.attempts": 10,
}


class ArrivalWriter(SinkWriter):
    """Notes when results arrived, and writes that down as often as it may be killed."""

    def __init__(self, folder: str) -> None:
        self._folder = folder
        self._latencies = Latencies(folder)

    def write(self, value: Any) -> None:
        self._latencies.add(0)

    def flush(self) -> None:
        self._latencies.save()

    def close(self) -> None:
        self._latencies.save()


class ArrivalSink(Sink):
    def __init__(self, folder: str) -> None:
        self._folder = folder

    def create_writer(self, context: Any) -> SinkWriter:
        return ArrivalWriter(self._folder)


class RaiseOnce:
    """Passes lines on, and raises once when the file `trigger` is there."""

    def __init__(self, folder: str) -> None:
        self._folder = folder
        self._trigger = Path(folder) / "trigger"

    def __call__(self, line: str) -> str:
        if self._trigger.exists():
            self._trigger.unlink(missing_ok=True)
            mark(self._folder, "failed")
            raise RuntimeError("the benchmark asked for it")
        return line


def interruption(kill: bool) -> float:
    """Milliseconds from the failure to the next result."""
    with tempfile.TemporaryDirectory() as folder:
        env = environment(folder)
        env.configure(Configuration.from_dict(NO_DELAY))
        source = DataGeneratorSource(birth_line, RATE * SECONDS, RATE)
        stream = env.from_source(source, WatermarkStrategy.no_watermarks(), "payments")
        keyed_count(stream.map(RaiseOnce(folder)), Count(folder), ArrivalSink(folder))
        client = env.execute_async("recovery")
        while client.progress().completed_checkpoints < 2:
            time.sleep(0.05)
        if kill:
            _, pid = client.progress().slots[1]
            mark(folder, "failed")
            os.kill(pid, signal.SIGKILL)
        else:
            (Path(folder) / "trigger").touch()
        client.get_job_execution_result().result()
        [[failed]] = notes(folder, "failed")[:1]
        restarted = sorted(moment for [moment] in notes(folder, "opened") if moment > failed)
        arrivals = (moment for flat in notes(folder, "latency") for moment in flat[1::2])
        return (min(a for a in arrivals if a > restarted[0]) - failed) / 1e6


def main() -> None:
    share_with_workers()
    interruption(kill=False)  # makes the session
    spark = SparkSession.builder.getOrCreate()
    in_place = statistics.median(interruption(kill=False) for _ in range(ROUNDS))
    relaunch = statistics.median(interruption(kill=True) for _ in range(ROUNDS))
    # After a kill the other workers of the launch are gone too, so Spark starts new processes.
    launch = statistics.median(bare(spark) for _ in range(ROUNDS))
    details = f"in place {in_place:.0f} ms; relaunch {relaunch:.0f} ms, bare launch {launch:.0f} ms"
    print(details)
    figure = f"in place {in_place:.0f} ms, relaunch {relaunch - launch:+.0f} ms beyond Spark's"
    print(result_row("recovery", figure, details))


if __name__ == "__main__":
    main()
