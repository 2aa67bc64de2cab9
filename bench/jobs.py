"""The user's side of the benchmarks: the functions, and the jobs made of them.

The tight loop and the Penstock job call the very same functions. What they measure about
themselves costs nothing per record: `Count` notes when it was opened, `CountingWriter` counts,
and reads the clock only when its slot has nothing else to do.
"""

import json
import time
from collections.abc import Iterator
from typing import Any

from bench.stamps import Latencies, mark, note
from penstock.common import Configuration, Types
from penstock.connectors import Sink, SinkWriter
from penstock.datastream import DataStream, StreamExecutionEnvironment
from penstock.datastream.functions import KeyedProcessFunction, RuntimeContext
from penstock.datastream.state import ValueStateDescriptor

PARALLELISM = 2


def parse(line: str) -> dict[str, Any]:
    record: dict[str, Any] = json.loads(line)
    return record


def merchant_of(record: dict[str, Any]) -> str:
    merchant: str = record["merchant"]
    return merchant


class Count(KeyedProcessFunction):
    """One running count per merchant, one result per payment."""

    def __init__(self, folder: str) -> None:
        self._folder = folder

    def open(self, runtime_context: RuntimeContext) -> None:
        self._count = runtime_context.get_state(ValueStateDescriptor("count", Types.LONG()))
        mark(self._folder, "opened")

    def process_element(self, value: dict[str, Any], ctx: Any) -> Iterator[Any]:
        count = (self._count.value() or 0) + 1
        self._count.update(count)
        yield value["merchant"], count


class CountWithBirth(Count):
    """The same count; a result carries the time of birth of its payment."""

    def process_element(self, value: dict[str, Any], ctx: Any) -> Iterator[Any]:
        count = (self._count.value() or 0) + 1
        self._count.update(count)
        yield value["merchant"], count, value["birth"]


class CountingWriter(SinkWriter):
    """Counts, and notes how many records came and by when the last one was there."""

    def __init__(self, folder: str) -> None:
        self._folder = folder
        self._count = self._seen = self._last = 0

    def write(self, value: Any) -> None:
        self._count += 1

    def flush(self) -> None:
        if self._seen != self._count:
            self._seen = self._count
            self._last = time.time_ns()

    def close(self) -> None:
        self.flush()
        note(self._folder, "written", [self._count, self._last])


class CountingSink(Sink):
    def __init__(self, folder: str) -> None:
        self._folder = folder

    def create_writer(self, context: Any) -> SinkWriter:
        return CountingWriter(self._folder)


class LatencyWriter(SinkWriter):
    """Keeps birth and arrival of every result in memory until it is closed."""

    def __init__(self, folder: str) -> None:
        self._latencies = Latencies(folder)

    def write(self, value: Any) -> None:
        self._latencies.add(value[2])

    def close(self) -> None:
        self._latencies.save()


class LatencySink(Sink):
    def __init__(self, folder: str) -> None:
        self._folder = folder

    def create_writer(self, context: Any) -> SinkWriter:
        return LatencyWriter(self._folder)


def environment(folder: str, **more: str) -> StreamExecutionEnvironment:
    """Parallelism 2, a checkpoint every second into `folder`.

    `more` are keys with `_` for `.`; one with an empty value is left out.
    """
    settings = {
        "parallelism.default": PARALLELISM,
        "execution.checkpointing.interval": "1s",
        "execution.checkpointing.dir": f"file://{folder}/checkpoints",
        **{key.replace("_", "."): value for key, value in more.items()},
    }
    given = {key: value for key, value in settings.items() if value != ""}
    return StreamExecutionEnvironment.get_execution_environment(Configuration.from_dict(given))


def keyed_count(lines: DataStream, count: Count, sink: Sink) -> None:
    """From JSON lines to a running count per merchant to a sink."""
    lines.map(parse).key_by(merchant_of).process(count).sink_to(sink)
