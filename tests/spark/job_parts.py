"""What the jobs of these tests are made of; a module of its own, for slots import it by name."""

from __future__ import annotations

import contextlib
import os
import time
from collections import Counter
from collections.abc import Collection, Iterable, Iterator
from pathlib import Path
from typing import Any

import psutil
from patience import until

from penstock.common import Configuration, Types
from penstock.common.clock import Clock
from penstock.common.job_client import JobClient
from penstock.connectors import (
    EnumeratorContext,
    QueueEnumerator,
    ReaderContext,
    Source,
    SourceReader,
)
from penstock.datastream import (
    KeyedProcessFunction,
    MapFunction,
    RuntimeContext,
    StreamExecutionEnvironment,
)
from penstock.datastream.state import ValueStateDescriptor
from penstock.jobmanager.progress import Progress

KEYS = 17


def environment(
    parallelism: int = 1,
    checkpoints: Path | None = None,
    interval: str = "100 ms",
    settings: dict[str, Any] | None = None,
) -> StreamExecutionEnvironment:
    """An environment; checkpoints go to `checkpoints` if given."""
    values: dict[str, Any] = {"parallelism.default": parallelism, **(settings or {})}
    if checkpoints is not None:
        values["execution.checkpointing.interval"] = interval
        values["execution.checkpointing.dir"] = checkpoints.as_uri()
        values.setdefault("restart-strategy.type", "fixed-delay")
        values.setdefault("restart-strategy.fixed-delay.attempts", 1_000_000)
        values.setdefault("restart-strategy.fixed-delay.delay", "100 ms")
    return StreamExecutionEnvironment.get_execution_environment(Configuration.from_dict(values))


# --- functions --------------------------------------------------------------------------------


class Count(KeyedProcessFunction):
    """For every record (key, how many of this key so far, the record)."""

    def open(self, runtime_context: RuntimeContext) -> None:
        self._count = runtime_context.get_state(ValueStateDescriptor("count", Types.LONG()))

    def process_element(self, value: Any, ctx: Any) -> Iterator[tuple[Any, int, Any]]:
        count = (self._count.value() or 0) + 1
        self._count.update(count)
        yield ctx.get_current_key(), count, value


class WithSubtask(MapFunction):
    """For every record (the subtask that saw it, the record)."""

    def open(self, runtime_context: RuntimeContext) -> None:
        self._subtask = runtime_context.get_index_of_this_subtask()

    def map(self, value: Any) -> tuple[int, Any]:
        return self._subtask, value


class RaiseOnce(MapFunction):
    """Passes records on; raises at the first `poison`, and never again while `marker` exists."""

    def __init__(self, poison: Any, marker: Path) -> None:
        self._poison = poison
        self._marker = marker

    def map(self, value: Any) -> Any:
        if value == self._poison and not self._marker.exists():
            self._marker.touch()
            raise RuntimeError(f"cannot digest {value}")
        return value


class RaiseAtEach(MapFunction):
    """Passes numbers on; raises once at each multiple of `step`, remembered in `folder`."""

    def __init__(self, step: int, folder: Path) -> None:
        self._step = step
        self._folder = folder

    def map(self, value: int) -> int:
        marker = self._folder / str(value)
        if value and value % self._step == 0 and not marker.exists():
            marker.touch()
            raise RuntimeError(f"cannot digest {value}")
        return value


def key_of(number: int) -> int:
    return number % KEYS


def as_line(counted: tuple[Any, int, Any]) -> str:
    return " ".join(map(str, counted))


class Sleep:
    """Passes records on, each after some seconds."""

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds

    def __call__(self, value: Any) -> Any:
        time.sleep(self._seconds)
        return value


# --- a source that runs until it is told to end -----------------------------------------------


class Ticker(Source):
    """Numbers from 0 at a rate, until the file `stop` exists; split i of n makes i, i + n, ...

    Where a split ends it notes how far it came in a file beside `stop`, which is read by
    `ticked`. A split that ends again, after a failure, notes it again.
    """

    def __init__(self, stop: Path, rate_per_second: float) -> None:
        self._stop = stop
        self._rate = rate_per_second

    def create_enumerator(self, context: EnumeratorContext, restored: Any) -> QueueEnumerator:
        step = context.parallelism
        splits = [{"next": i, "step": step} for i in range(step)]
        return QueueEnumerator(splits if restored is None else restored)

    def create_reader(self, context: ReaderContext) -> SourceReader:
        return _TickerReader(self._stop, self._rate / context.parallelism, context.clock)


class _TickerReader(SourceReader):
    def __init__(self, stop: Path, rate: float, clock: Clock) -> None:
        self._stop = stop
        self._pause_ms = 1000 / rate
        self._clock = clock
        self._due_ms = 0.0
        self._splits: list[dict[str, int]] = []

    def add_splits(self, splits: list[Any]) -> None:
        self._splits.extend(dict(split) for split in splits)
        self._due_ms = self._clock.now_ms()

    def poll(self, limit: int) -> list[Any] | None:
        if not self._splits:
            return None
        if self._stop.exists():
            for split in self._splits:
                number = split["next"] % split["step"]
                _end_of(self._stop, number, split["step"]).write_text(str(split["next"]))
            self._splits.clear()
            return None
        count = min(limit, int((self._clock.now_ms() - self._due_ms) / self._pause_ms))
        self._due_ms += count * self._pause_ms
        split = self._splits[0]
        start, step = split["next"], split["step"]
        split["next"] = start + count * step
        return list(range(start, split["next"], step))

    def next_poll_ms(self) -> int:
        return int(self._due_ms + max(10, self._pause_ms))

    def snapshot(self) -> list[Any]:
        return [dict(split) for split in self._splits]


def _end_of(stop: Path, split: int | str, splits: int | str) -> Path:
    """Where a split of the `Ticker` that ends with `stop` notes how far it came."""
    return stop.with_name(f"{stop.name}-{split}-of-{splits}")


def ticked(stop: Path) -> set[int]:
    """The numbers that the `Ticker` of a job made that has finished."""
    notes = list(stop.parent.glob(_end_of(stop, "*", "*").name))
    splits = len(notes)
    assert splits and all(note.name.endswith(f"-of-{splits}") for note in notes), "all have ended"
    return {
        number
        for split in range(splits)
        for number in range(split, int(_end_of(stop, split, splits).read_text()), splits)
    }


# --- what came out ----------------------------------------------------------------------------


def visible_lines(folder: Path) -> list[str]:
    """The lines of the files that a reader of `folder` would see."""
    files = [path for path in sorted(folder.iterdir()) if not path.name.startswith((".", "_"))]
    return [line for path in files for line in path.read_text().splitlines()]


def check_counts(counted: Iterable[tuple[int, int, int]], made: Collection[int]) -> None:
    """Every number that the source made once, and nothing else; every count of every key once.

    `counted` are records of `Count`, and `made` the numbers of the source, each once.
    """
    records = [tuple(map(int, record)) for record in counted]
    numbers = Counter(number for _, _, number in records)
    assert not [number for number, times in numbers.items() if times > 1], "counted twice"
    assert not sorted(set(made) - set(numbers)), "left out"
    assert not sorted(set(numbers) - set(made)), "never made"
    by_key: dict[int, list[int]] = {}
    for key, count, number in records:
        assert key == key_of(number)
        by_key.setdefault(key, []).append(count)
    for key, counts in by_key.items():
        assert sorted(counts) == list(range(1, len(counts) + 1)), f"the counts of key {key}"


def check_output(folder: Path, made: Collection[int]) -> None:
    """`check_counts` on the files of a sink whose job has finished: all of them are visible."""
    assert not [path.name for path in folder.iterdir() if path.name.startswith(".")]
    check_counts((line.split() for line in visible_lines(folder)), made)


def check_ticks(folder: Path, stop: Path) -> int:
    """`check_output` of a job whose source is the `Ticker` that ended with `stop`; its records."""
    made = ticked(stop)
    check_output(folder, made)
    return len(made)


# --- looking at jobs and processes ------------------------------------------------------------


def running(job: JobClient, attempt: int = 1, checkpoints: int = 0) -> Progress:
    """Wait until records flow in this attempt or a later one; the job's progress then."""

    def flows() -> Progress | None:
        result = job.get_job_execution_result()
        if result.done():
            result.result()
            raise AssertionError("the job ended before that")
        progress: Progress = job.progress()
        there = progress.attempt >= attempt and progress.completed_checkpoints >= checkpoints
        moved = any(metrics.records_in for metrics in progress.metrics.values())
        return progress if there and moved else None

    return until(flows, f"records flow in attempt {attempt}")


def slot_pids(progress: Progress) -> list[int]:
    return [pid for _, pid in progress.slots.values()]


def is_slot(pid: int) -> bool:
    """Whether the process runs a slot: it listens for other slots.

    Spark keeps the process of a slot that ended, idle, for its next task.
    """
    with contextlib.suppress(psutil.NoSuchProcess):
        process = psutil.Process(pid)
        listening = [c for c in process.net_connections("tcp") if c.status == psutil.CONN_LISTEN]
        return bool(listening)
    return False


def records_in(progress: Progress, vertex: int) -> int:
    """How many records the subtasks of a vertex have taken in."""
    return sum(m.records_in for subtask, m in progress.metrics.items() if subtask.vertex == vertex)


def pid_of_slot(value: Any) -> int:
    return os.getpid()
