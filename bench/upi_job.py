"""The UPI job: payments per merchant and minute, by when they happened."""

import json
import time
from typing import Any

from bench.stamps import mark, note
from penstock.common import Duration, Time, WatermarkStrategy
from penstock.connectors import Sink, SinkWriter
from penstock.datastream import DataStream
from penstock.datastream.window import TumblingEventTimeWindows

MINUTE_MS = 60_000
DELAY_MS = 5_000


def event_time(line: str, record_timestamp: int | None) -> int:
    at: int = json.loads(line)["ts_ms"]
    return at


def to_pair(line: str) -> tuple[str, int]:
    return json.loads(line)["merchant"], 1


def first(pair: tuple[str, int]) -> str:
    return pair[0]


def add(left: tuple[str, int], right: tuple[str, int]) -> tuple[str, int]:
    return left[0], left[1] + right[1]


STRATEGY = WatermarkStrategy.for_bounded_out_of_orderness(
    Duration.of_millis(DELAY_MS)
).with_timestamp_assigner(event_time)


class SumWriter(SinkWriter):
    """Adds up the counts, and notes the sum and by when the last result was there."""

    def __init__(self, folder: str) -> None:
        self._folder = folder
        self._sum = self._seen = self._last = 0

    def open(self) -> None:
        mark(self._folder, "opened")

    def write(self, value: Any) -> None:
        self._sum += value[1]

    def flush(self) -> None:
        if self._seen != self._sum:
            self._seen = self._sum
            self._last = time.time_ns()

    def close(self) -> None:
        self.flush()
        note(self._folder, "written", [self._sum, self._last])


class SumSink(Sink):
    def __init__(self, folder: str) -> None:
        self._folder = folder

    def create_writer(self, context: Any) -> SinkWriter:
        return SumWriter(self._folder)


def per_minute(lines: DataStream, sink: Sink, pair: Any = to_pair) -> None:
    """From JSON lines with timestamps to a count per merchant and minute to a sink."""
    windows = lines.map(pair).key_by(first).window(TumblingEventTimeWindows.of(Time.minutes(1)))
    windows.reduce(add).sink_to(sink)
