"""Live rescale: how long results stand still, in units of what a savepoint of the same state takes.

One keyed job first fills its state, then goes on at a steady rate. In turn, a savepoint is taken at
parallelism 1, the job is rescaled to 2, and back to 1 for the next round. Results stand still from
the last that the old slots wrote to the moment at which each of the new ones has written one.

    python -m bench.rescale --keys 2000000
"""

import argparse
import statistics
import tempfile
import time
from collections.abc import Callable
from typing import Any

from bench.common import result_row, share_with_workers
from bench.stamps import note, notes
from penstock.common import Configuration, JobClient, Types, WatermarkStrategy
from penstock.connectors import (
    EnumeratorContext,
    QueueEnumerator,
    ReaderContext,
    Sink,
    SinkWriter,
    Source,
    SourceReader,
)
from penstock.datastream import KeyedProcessFunction, RuntimeContext, StreamExecutionEnvironment
from penstock.datastream.state import ValueStateDescriptor

RATE = 2_000
SLICE = 1_000


class FillAndTick(Source):
    """The numbers from 0: as fast as it goes up to `keys`, then `RATE` in a second, without end."""

    def __init__(self, keys: int) -> None:
        self._keys = keys

    def create_enumerator(self, context: EnumeratorContext, restored: Any) -> QueueEnumerator:
        return QueueEnumerator([{"next": 0}] if restored is None else restored)

    def create_reader(self, context: ReaderContext) -> SourceReader:
        return _Reader(self._keys)


class _Reader(SourceReader):
    def __init__(self, keys: int) -> None:
        self._keys = keys
        self._splits: list[Any] = []
        self._due = time.monotonic()

    def add_splits(self, splits: list[Any]) -> None:
        self._splits += [dict(split) for split in splits]

    def poll(self, limit: int) -> list[Any] | None:
        if not self._splits:
            return None
        start = self._splits[0]["next"]
        count = min(limit, SLICE)
        if start >= self._keys:
            count = min(count, int((time.monotonic() - self._due) * RATE))
            self._due += count / RATE
        else:
            self._due = time.monotonic()
        self._splits[0]["next"] = start + count
        return list(range(start, start + count))

    def next_poll_ms(self) -> int:
        return int(time.time() * 1000) + 5

    def snapshot(self) -> list[Any]:
        return [dict(split) for split in self._splits]


class Count(KeyedProcessFunction):
    """How often each key was seen."""

    def open(self, runtime_context: RuntimeContext) -> None:
        self._count = runtime_context.get_state(ValueStateDescriptor("count", Types.LONG()))

    def process_element(self, value: int, ctx: Any) -> Any:
        count = (self._count.value() or 0) + 1
        self._count.update(count)
        yield value


class ArrivalWriter(SinkWriter):
    """Notes when its first and its last record came, and when it has one that was not filling."""

    def __init__(self, folder: str, keys: int) -> None:
        self._folder = folder
        self._keys = keys
        self._first = self._last = 0
        self._filled = False

    def write(self, value: int) -> None:
        self._last = time.time_ns()
        if not self._first:
            self._first = self._last
            note(self._folder, "first", [self._first])
        if not self._filled and value >= self._keys:
            self._filled = True
            note(self._folder, "filled", [self._last])

    def close(self) -> None:
        if self._first:
            note(self._folder, "wrote", [self._first, self._last])


class ArrivalSink(Sink):
    def __init__(self, folder: str, keys: int) -> None:
        self._folder = folder
        self._keys = keys

    def create_writer(self, context: Any) -> SinkWriter:
        return ArrivalWriter(self._folder, self._keys)


def start(folder: str, keys: int, backend: str) -> JobClient:
    settings = {
        "parallelism.default": "1",
        "state.backend.type": backend,
        "execution.checkpointing.interval": "1s",
        "execution.checkpointing.dir": f"file://{folder}/checkpoints",
        "state.savepoints.dir": f"file://{folder}/savepoints",
    }
    env = StreamExecutionEnvironment.get_execution_environment(Configuration.from_dict(settings))
    stream = env.from_source(FillAndTick(keys), WatermarkStrategy.no_watermarks(), "numbers")
    stream.key_by(lambda n: n % keys).process(Count()).sink_to(ArrivalSink(folder, keys))
    return env.execute_async("rescale")


def wait_for(condition: Callable[[], Any]) -> None:
    while not condition():
        time.sleep(0.02)


def change(client: JobClient, folder: str, parallelism: int) -> float:
    """Rescale the job; seconds for which results stood still."""
    began = time.time_ns()
    firsts, written = len(notes(folder, "first")), len(notes(folder, "wrote"))
    client.rescale(parallelism).result()
    wait_for(lambda: len(notes(folder, "first")) >= firsts + parallelism)
    wait_for(lambda: len(notes(folder, "wrote")) > written)
    stood = max(last for _, last in notes(folder, "wrote"))
    went_on = max(first for [first] in notes(folder, "first") if first > began)
    return (went_on - stood) / 1e9


def measure(keys: int, backend: str, rounds: int) -> tuple[list[float], list[float]]:
    """Seconds of savepoints at parallelism 1, and for which 1 -> 2 stopped the results."""
    savepoints, stood = [], []
    with tempfile.TemporaryDirectory() as folder:
        client = start(folder, keys, backend)
        wait_for(lambda: notes(folder, "filled"))
        for number in range(rounds):
            completed = client.progress().completed_checkpoints
            wait_for(lambda seen=completed: client.progress().completed_checkpoints >= seen + 2)
            began = time.monotonic()
            client.trigger_savepoint().result()
            savepoints.append(time.monotonic() - began)
            stood.append(change(client, folder, 2))
            print(f"savepoint {savepoints[-1]:.2f} s, stood {stood[-1]:.2f} s", flush=True)
            if number + 1 < rounds:
                change(client, folder, 1)
        client.cancel().result()
    return savepoints, stood


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--keys", type=int, default=2_000_000)
    parser.add_argument("--backend", choices=["hashmap", "rocksdb"], default="hashmap")
    parser.add_argument("--rounds", type=int, default=3)
    given = parser.parse_args()
    share_with_workers()
    savepoints, stood = measure(given.keys, given.backend, given.rounds)
    savepoint, still = statistics.median(savepoints), statistics.median(stood)
    details = (
        f"{given.keys:,} keys on {given.backend}, 1 -> 2: results stood still for {still:.2f} s, "
        f"a savepoint took {savepoint:.2f} s"
    )
    print(result_row("rescale", f"{still / savepoint:.2f} x a savepoint", details))


if __name__ == "__main__":
    main()
