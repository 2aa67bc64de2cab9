"""A source that a test feeds by hand."""

from __future__ import annotations

import itertools
from collections import deque
from collections.abc import Callable
from typing import Any

from penstock.common.plain import Plain
from penstock.connectors.source import (
    EnumeratorContext,
    QueueEnumerator,
    ReaderContext,
    Source,
    SourceReader,
    SplitEnumerator,
)

_feeds: dict[int, Feed] = {}
_numbers = itertools.count()


class Feed:
    """The records that wait to be read."""

    def __init__(self) -> None:
        self.number = next(_numbers)
        self.values: deque[Any] = deque()
        self.ended = False
        self.wake: Callable[[], None] = lambda: None
        _feeds[self.number] = self

    def put(self, value: Any, timestamp: int | None = None) -> None:
        self.values.append((value, timestamp))
        self.wake()

    def end(self) -> None:
        self.ended = True
        self.wake()

    def forget(self) -> None:
        _feeds.pop(self.number, None)


class FedSource(Source):
    """Reads a feed. It is pickled into programs as a number, and so always finds the same feed."""

    timed = True

    def __init__(self, feed: Feed) -> None:
        self._number = feed.number

    def create_enumerator(
        self, context: EnumeratorContext, restored: Plain | None
    ) -> SplitEnumerator:
        return QueueEnumerator(())

    def create_reader(self, context: ReaderContext) -> SourceReader:
        return _FedReader(_feeds[self._number], context)


class _FedReader(SourceReader):
    def __init__(self, feed: Feed, context: ReaderContext) -> None:
        self._feed = feed
        self._timed = context.timed
        feed.wake = context.wake

    def add_splits(self, splits: list[Plain]) -> None:
        """There are no splits: nothing to do."""

    def poll(self, limit: int) -> list[Any] | None:
        values = self._feed.values
        if values:
            taken = [values.popleft() for _ in range(min(limit, len(values)))]
            return taken if self._timed else [value for value, _ in taken]
        return None if self._feed.ended else []

    def snapshot(self) -> list[Plain]:
        return []
