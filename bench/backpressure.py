"""Backpressure: what is in memory when a job makes records faster than it can use them.

Two jobs, each in a process of its own so that all of its memory can be seen from outside:
an endless source before an operator that takes 5 ms per record, and a `flat_map` that makes a
million records from one.
"""

import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from typing import Any

from bench.common import result_row, share_with_workers, start_module
from bench.jobs import CountingSink, environment
from bench.memory import end, memory_of
from bench.stamps import Tally, tallied
from penstock.common import WatermarkStrategy
from penstock.datastream.connectors.data_generator import DataGeneratorSource

WARMUP, SECONDS, PAUSE = 5.0, 20.0, 0.5
RECORD_BYTES = 1_000
EXPLOSION = 1_000_000


class Make:
    """The source: makes records of a kilobyte and tallies them."""

    def __init__(self, folder: str) -> None:
        self._emitted = Tally(folder, "emitted")

    def __call__(self, number: int) -> tuple[int, bytes]:
        self._emitted.add()
        return number, bytes(RECORD_BYTES)


class Slow:
    """The operator: 5 ms per record."""

    def __init__(self, folder: str) -> None:
        self._processed = Tally(folder, "processed")

    def __call__(self, value: Any) -> Any:
        time.sleep(0.005)
        self._processed.add()
        return value


class Explode:
    """Makes a million records from one, after a rest in which memory can be read."""

    def __init__(self, folder: str) -> None:
        self._started = Tally(folder, "started")

    def __call__(self, value: int) -> Iterator[tuple[int, bytes]]:
        self._started.add()
        time.sleep(1.0)
        for number in range(EXPLOSION):
            yield number, bytes(RECORD_BYTES)


def identity(value: Any) -> Any:
    return value


def run_slow(folder: str) -> None:
    env = environment(folder)
    source = DataGeneratorSource(Make(folder), None, None)
    stream = env.from_source(source, WatermarkStrategy.no_watermarks(), "endless")
    stream.rebalance().map(Slow(folder)).sink_to(CountingSink(folder))
    env.execute("slow operator")


def run_explode(folder: str) -> None:
    env = environment(folder)
    source = DataGeneratorSource(identity, 1, None)
    stream = env.from_source(source, WatermarkStrategy.no_watermarks(), "one")
    stream.flat_map(Explode(folder)).rebalance().map(identity).sink_to(CountingSink(folder))
    env.execute("explosion")


JOBS: dict[str, Callable[[str], None]] = {"slow": run_slow, "explode": run_explode}


def wait_for(process: subprocess.Popen[str], folder: str, tally: str) -> None:
    """Until the job has counted something under that name."""
    deadline = time.monotonic() + 120
    while not tallied(folder, tally):
        if process.poll() is not None or time.monotonic() > deadline:
            raise RuntimeError(f"the job did not get as far as {tally!r}")
        time.sleep(0.02)


def watch_slow() -> str:
    """How memory and the number of records under way move while the operator is too slow."""
    memory, under_way = [], []
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        process = start_module("bench.backpressure", "slow", folder)
        try:
            wait_for(process, folder, "processed")
            time.sleep(WARMUP)
            before = tallied(folder, "processed")
            for _ in range(int(SECONDS / PAUSE)):
                memory.append(memory_of(process))
                under_way.append(tallied(folder, "emitted") - tallied(folder, "processed"))
                time.sleep(PAUSE)
            processed = tallied(folder, "processed") - before
        finally:
            end(process)
    python = [sample.python for sample in memory]
    quarter = len(python) // 4
    growth = statistics.median(python[-quarter:]) - statistics.median(python[:quarter])
    java = memory[-1].java - memory[0].java
    return (
        f"slow operator: {processed:,} processed in {SECONDS:.0f} s, "
        f"{min(under_way):,}-{max(under_way):,} records under way, "
        f"Python memory {growth:+.1f} MB (range {max(python) - min(python):.1f} MB), "
        f"JVM {java:+.1f} MB"
    )


def watch_explosion() -> str:
    """How much Python memory grows at most while one record becomes a million."""
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        process = start_module("bench.backpressure", "explode", folder)
        try:
            wait_for(process, folder, "started")
            before = peak = memory_of(process).python
            while process.poll() is None:
                peak = max(peak, memory_of(process).python)
                time.sleep(0.05)
        finally:
            end(process)
    whole = EXPLOSION * RECORD_BYTES / 2**20
    return (
        f"explosion: Python memory +{peak - before:.1f} MB at most, for {whole:.0f} MB of records"
    )


def main() -> None:
    share_with_workers()
    if len(sys.argv) == 3:
        JOBS[sys.argv[1]](sys.argv[2])
        return
    slow = watch_slow()
    print(slow)
    explosion = watch_explosion()
    print(explosion)
    print(result_row("backpressure", "see details", f"{slow}; {explosion}"))


if __name__ == "__main__":
    main()
