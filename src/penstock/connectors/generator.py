"""Sources that make their records: a sequence of numbers, and a generator with a rate."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from penstock.common.clock import Clock
from penstock.common.plain import Plain
from penstock.connectors.source import (
    EnumeratorContext,
    QueueEnumerator,
    ReaderContext,
    Source,
    SourceReader,
    SplitEnumerator,
)
from penstock.errors import ProgramError

_ENDLESS = 1 << 62


class DataGeneratorSource(Source):
    """Emits `function(n)` for n = 0, 1, 2, ...

    `count` bounds it; `rate_per_second` is the rate of all subtasks together. Subtask i of p makes
    the numbers i, i + p, i + 2p, ..., so that at any moment they have come about equally far.
    """

    def __init__(
        self,
        function: Callable[[int], Any],
        count: int | None = None,
        rate_per_second: float | None = None,
    ) -> None:
        if count is not None and count < 0:
            raise ProgramError(f"a data generator cannot make {count} records")
        if rate_per_second is not None and rate_per_second <= 0:
            raise ProgramError(f"a rate of {rate_per_second} records per second makes none")
        self._function = function
        self._count = _ENDLESS if count is None else count
        self._rate = rate_per_second

    def create_enumerator(
        self, context: EnumeratorContext, restored: Plain | None
    ) -> SplitEnumerator:
        step = context.parallelism
        splits = [{"next": i, "step": step} for i in range(step)]
        return QueueEnumerator(splits if restored is None else restored)

    def create_reader(self, context: ReaderContext) -> SourceReader:
        rate = None if self._rate is None else self._rate / context.parallelism
        return _GeneratorReader(self._function, self._count, rate, context.clock)


class NumberSequenceSource(DataGeneratorSource):
    """The numbers from `start` to `end`, both included."""

    def __init__(self, start: int, end: int) -> None:
        if start > end:
            raise ProgramError(f"a number sequence cannot go from {start} up to {end}")
        super().__init__(_Offset(start), end - start + 1)


class _Offset:
    def __init__(self, start: int) -> None:
        self._start = start

    def __call__(self, n: int) -> int:
        return self._start + n


class _GeneratorReader(SourceReader):
    def __init__(
        self, function: Callable[[int], Any], end: int, rate: float | None, clock: Clock
    ) -> None:
        self._function = function
        self._end = end
        self._rate = rate
        self._clock = clock
        self._splits: list[dict[str, int]] = []
        self._started_ms = self._seen_ms = 0
        self._emitted = 0

    def add_splits(self, splits: list[Plain]) -> None:
        self._splits.extend(dict(split) for split in splits)
        self._started_ms = self._clock.now_ms()
        self._emitted = 0

    def poll(self, limit: int) -> list[Any] | None:
        while self._splits and self._splits[0]["next"] >= self._end:
            self._splits.pop(0)
        if not self._splits:
            return None
        split = self._splits[0]
        start, step = split["next"], split["step"]
        left = -(-(self._end - start) // step)
        count = min(limit, left, self._allowed())
        if count <= 0:
            return []
        split["next"] = start + count * step
        self._emitted += count
        function = self._function
        return [function(n) for n in range(start, start + count * step, step)]

    def _allowed(self) -> int:
        """How many records the rate allows now. Time lost to backpressure is not made up for."""
        if self._rate is None:
            return _ENDLESS
        now = self._clock.now_ms()
        due = int((now - self._started_ms) * self._rate / 1000) + 1
        behind = due - self._emitted
        set_back, self._seen_ms = now < self._seen_ms, now
        if behind > self._rate or set_back:
            self._started_ms, self._emitted = now, 0
            return 1
        return behind

    def next_poll_ms(self) -> int | None:
        if self._rate is None:
            return None
        return self._started_ms + int(self._emitted * 1000 / self._rate) + 1

    def snapshot(self) -> list[Plain]:
        return [dict(split) for split in self._splits]
