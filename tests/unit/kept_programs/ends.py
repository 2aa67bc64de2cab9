"""Where the programs begin and end: a source of numbers, and a sink that commits results.

All parts of a program run in the process of the test, so the test and they share `INPUT` and
`WRITTEN`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from penstock.common.clock import Clock
from penstock.connectors.sink import Committer, CommitterContext, Sink, SinkWriter, WriterContext
from penstock.connectors.source import (
    EnumeratorContext,
    QueueEnumerator,
    ReaderContext,
    Source,
    SourceReader,
)


class Input:
    """Up to which number the source reads, and how far it has come."""

    def begin(self, below: int, ends: bool = False, waits_for: int = 0) -> None:
        """Let a run begin; the source waits at `below`, or ends there."""
        self.below = below
        self.ends = ends
        self.waits_for = waits_for
        self.next = {0: 0, 1: 0}
        """The next number by parity: that of each split."""
        self.results = 0
        WRITTEN.clear()

    def go_on(self, below: int) -> None:
        self.below = below

    def read_all(self) -> bool:
        return min(self.next.values()) >= self.below

    def over(self) -> bool:
        return self.ends and self.results >= self.waits_for


INPUT = Input()
WRITTEN: dict[str, str] = {}
"""What was committed, by the name that its writer gave it."""


class Numbers(Source):
    """The numbers from 0 on in two splits, the even and the odd ones."""

    def create_enumerator(self, context: EnumeratorContext, restored: Any) -> QueueEnumerator:
        return QueueEnumerator([0, 1] if restored is None else restored)

    def create_reader(self, context: ReaderContext) -> SourceReader:
        return NumbersReader(context.clock)


class NumbersReader(SourceReader):
    def __init__(self, clock: Clock) -> None:
        self.clock = clock
        self.next: list[int] = []

    def add_splits(self, splits: list[Any]) -> None:
        self.next += splits

    def poll(self, limit: int) -> list[int] | None:
        for place, number in enumerate(self.next):
            if number < INPUT.below:
                self.next[place] += 2
                INPUT.next[number % 2] = number + 2
                return [number]
        return None if INPUT.over() or not self.next else []

    def next_poll_ms(self) -> int:
        # Before the snapshot time is to pass slowly, so that the clock brings nothing about.
        return self.clock.now_ms() + (100 if INPUT.ends else 1)

    def snapshot(self) -> list[Any]:
        return list(self.next)


class Results(Sink):
    """Makes results visible when their checkpoint is complete: those before it are in it."""

    def create_writer(self, context: WriterContext) -> SinkWriter:
        return ResultsWriter(f"{context.job_id}-{context.attempt}-{context.subtask}")

    def create_committer(self, context: CommitterContext) -> Committer:
        return ResultsCommitter()


class ResultsWriter(SinkWriter):
    def __init__(self, name: str) -> None:
        self.name = name
        self.count = 0
        self.rows: dict[str, str] = {}

    def write(self, value: Any) -> None:
        self.count += 1
        INPUT.results += 1
        self.rows[f"{self.name}-{self.count}"] = repr(value)

    def prepare_commit(self) -> Callable[[], list[Any]]:
        rows, self.rows = self.rows, {}
        return lambda: [rows] if rows else []


class ResultsCommitter(Committer):
    def commit(self, committables: list[Any]) -> None:
        for rows in committables:
            WRITTEN.update(rows)

    def abort_others(self, keep: list[Any]) -> None:
        pass
