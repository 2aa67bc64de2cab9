"""Fairness: two sources whose records meet in an overloaded operator.

Nine in ten records of both sources have a key of one slot, which is the bottleneck. Neither source
may fall behind the other by more than what credits let be under way. Printed is the largest
distance seen while the job runs, in records, next to that bound.
"""

import tempfile
import time
from typing import Any

from bench.common import result_row, share_with_workers
from bench.jobs import PARALLELISM, CountingSink, environment
from bench.stamps import Tally, tallied
from penstock.common import WatermarkStrategy
from penstock.common.keys import groups_of_subtask, key_group
from penstock.common.settings import RuntimeSettings
from penstock.datastream.connectors.data_generator import DataGeneratorSource
from penstock.datastream.functions import KeyedProcessFunction

SECONDS = 15
WORK_SECONDS = 0.0002


class Made:
    """Makes records of source `name` and counts them; 90 % have a key of slot 0."""

    def __init__(self, folder: str, name: str) -> None:
        self._tally = Tally(folder, name)
        self._name = name
        first = groups_of_subtask(0, 128, PARALLELISM)
        keys = [f"key-{number}" for number in range(1000)]
        self._heavy = [key for key in keys if key_group(key, 128) in first][:100]
        self._light = [key for key in keys if key_group(key, 128) not in first][:100]

    def __call__(self, number: int) -> tuple[str, str, int]:
        self._tally.add()
        keys = self._light if number // PARALLELISM % 10 == 0 else self._heavy
        return self._name, keys[number % 100], number


class Work(KeyedProcessFunction):
    """Spends a little time on every record."""

    def process_element(self, value: Any, ctx: Any) -> list[Any]:
        end = time.perf_counter() + WORK_SECONDS
        while time.perf_counter() < end:
            pass
        return [value]


def main() -> None:
    share_with_workers()
    with tempfile.TemporaryDirectory() as folder:
        env = environment(folder)
        strategy = WatermarkStrategy.no_watermarks()
        left = env.from_source(DataGeneratorSource(Made(folder, "left")), strategy, "left")
        right = env.from_source(DataGeneratorSource(Made(folder, "right")), strategy, "right")
        both = left.union(right).key_by(lambda record: record[1])
        both.process(Work()).sink_to(CountingSink(folder))
        client = env.execute_async("fairness")
        while not tallied(folder, "left"):
            time.sleep(0.1)
        apart = 0
        end = time.monotonic() + SECONDS
        while time.monotonic() < end:
            time.sleep(0.05)
            apart = max(apart, abs(tallied(folder, "left") - tallied(folder, "right")))
        made = tallied(folder, "left"), tallied(folder, "right")
        client.cancel().result()
    settings = RuntimeSettings()
    # Per source: a step in each subtask, and per channel its credits, one that waits, one to fill.
    buffers = PARALLELISM * PARALLELISM * (settings.credits + 2) * settings.buffer_records
    bound = buffers + PARALLELISM * settings.step_records
    details = f"left {made[0]:,}, right {made[1]:,} records; bound {bound:,}"
    print(f"largest distance {apart:,} records; {details}")
    print(result_row("fairness", f"{apart / bound:.2f} x the bound of the credits", details))


if __name__ == "__main__":
    main()
