"""Several sources one after another, as one: files of the past, then the topic of the present.

All readers finish one source before any begins the next, so that what is old comes before what is
new. A reader asks for splits when it has read all it had; when every reader has asked and there
was nothing left, the next source begins. Splits carry the number of their source.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from penstock.common.plain import Plain
from penstock.connectors.source import (
    EnumeratorContext,
    ReaderContext,
    Source,
    SourceReader,
    SplitEnumerator,
)
from penstock.errors import ProgramError

_WAIT_MS = 100
"""How soon a reader asks again that waits for others, or for the next source."""


class SourcesInTurn(Source):
    """Reads sources in turn; all but the last must end."""

    def __init__(self, sources: Sequence[Source]) -> None:
        if not sources:
            raise ProgramError("a hybrid source needs at least one source")
        if any(source.watermark_strategy is not None for source in sources):
            raise ProgramError(
                "a hybrid source has one watermark strategy, that of from_source(): do not give "
                "its sources any"
            )
        self._sources = tuple(sources)
        # Timestamps are asked for from all of them or from none.
        self.timed = all(source.timed for source in sources)
        self.keeps_bad_records = any(source.keeps_bad_records for source in sources)

    def create_enumerator(
        self, context: EnumeratorContext, restored: Plain | None
    ) -> SplitEnumerator:
        return _Enumerator(self._sources, context, restored)

    def create_reader(self, context: ReaderContext) -> SourceReader:
        return _Reader(self._sources, context)


class _Enumerator(SplitEnumerator):
    """The enumerator of one source, and then that of the next."""

    def __init__(
        self, sources: tuple[Source, ...], context: EnumeratorContext, restored: Plain | None
    ) -> None:
        self._sources = sources
        self._context = context
        self._number = 0 if restored is None else restored["source"]
        self._waiting: set[int] = set()
        """Readers that have read all there was for them of the current source."""
        self._next: _Next | None = None
        self._current: SplitEnumerator | None = None
        if restored is None or restored["begun"]:
            state = None if restored is None else restored["state"]
            self._current = sources[self._number].create_enumerator(context, state)
        else:
            self._begin()

    def must_look(self, subtask: int) -> bool:
        current = self._enumerator()
        return current is not None and current.must_look(subtask)

    def look(self) -> tuple[SplitEnumerator | None, Any]:
        current = self._current
        return current, None if current is None else current.look()

    def found(self, result: tuple[SplitEnumerator | None, Any]) -> None:
        current, found = result
        if current is not None and current is self._current:
            current.found(found)

    def next_splits(self, subtask: int) -> list[Plain] | None:
        current = self._enumerator()
        if current is None:
            return []
        splits = current.next_splits(subtask)
        if splits is not None:
            return [{"source": self._number, "split": split} for split in splits]
        if self._is_last():
            return None
        self._waiting.add(subtask)
        if len(self._waiting) == self._context.parallelism:
            current.close()
            self._number += 1
            self._begin()
        return []

    def ask_again_ms(self, subtask: int) -> int | None:
        if self._current is None or subtask in self._waiting:
            return _WAIT_MS
        # Before the last source a question must mean that the reader has read all it had.
        return self._current.ask_again_ms(subtask) if self._is_last() else None

    def check(self) -> None:
        if self._current is not None:
            self._current.check()

    def waited_for(self, subtask: int) -> bool:
        # Between two sources every reader waits for the splits of the next one.
        if self._current is None or not self._is_last():
            return True
        return self._current.waited_for(subtask)

    def snapshot(self) -> Plain:
        # Who waits is not part of it: in the next attempt readers may get others' splits.
        current = self._current
        state = None if current is None else current.snapshot()
        return {"source": self._number, "begun": current is not None, "state": state}

    def close(self) -> None:
        current, self._current = self._current, None
        if current is not None:
            current.close()
        if self._next is not None:
            self._next.abandon()

    def _is_last(self) -> bool:
        return self._number == len(self._sources) - 1

    def _begin(self) -> None:
        """Make the enumerator of the next source; it may ask a server, and nobody may wait."""
        self._current = None
        self._waiting.clear()
        self._next = _Next(self._sources[self._number], self._context)

    def _enumerator(self) -> SplitEnumerator | None:
        if self._next is not None:
            self._current = self._next.result()
            if self._current is not None:
                self._next = None
        return self._current


class _Next:
    """An enumerator in the making, in a thread."""

    def __init__(self, source: Source, context: EnumeratorContext) -> None:
        self._source = source
        self._context = context
        self._made: SplitEnumerator | None = None
        self._error: Exception | None = None
        self._abandoned = False
        self._lock = threading.Lock()
        threading.Thread(target=self._run, name="penstock-next-source", daemon=True).start()

    def result(self) -> SplitEnumerator | None:
        """The enumerator, when it is there."""
        with self._lock:
            if self._error is not None:
                raise self._error
            return self._made

    def abandon(self) -> None:
        """Nobody wants it any more."""
        with self._lock:
            self._abandoned = True
            if self._made is not None:
                self._made.close()

    def _run(self) -> None:
        try:
            made = self._source.create_enumerator(self._context, None)
        except Exception as error:
            with self._lock:
                self._error = error
            return
        with self._lock:
            self._made = made
            if self._abandoned:
                made.close()


@dataclass(frozen=True)
class _Current:
    number: int
    reader: SourceReader


class _Reader(SourceReader):
    """The reader of one source, and then that of the next."""

    def __init__(self, sources: tuple[Source, ...], context: ReaderContext) -> None:
        self._sources = sources
        self._context = context
        self._current: _Current | None = None
        self._past: list[_Current] = []
        """Readers that have read all, and have splits that a checkpoint is to cover."""

    @property
    def pauses_splits(self) -> bool:  # type: ignore[override]
        return self._current is not None and self._current.reader.pauses_splits

    def add_splits(self, splits: list[Plain]) -> None:
        for number in sorted({split["source"] for split in splits}):
            reader = self._reader_of(number)
            reader.add_splits([split["split"] for split in splits if split["source"] == number])

    def poll(self, limit: int) -> list[Any] | None:
        return None if self._current is None else self._current.reader.poll(limit)

    def next_poll_ms(self) -> int | None:
        return None if self._current is None else self._current.reader.next_poll_ms()

    def split_of_last_poll(self) -> Plain:
        if self._current is None:
            return None
        split = self._current.reader.split_of_last_poll()
        return None if split is None else (self._current.number, split)

    def active_splits(self) -> list[Plain] | None:
        if self._current is None:
            return None
        splits = self._current.reader.active_splits()
        return None if splits is None else [(self._current.number, split) for split in splits]

    def pause_or_resume_splits(self, to_pause: list[Plain], to_resume: list[Plain]) -> None:
        if self._current is not None:
            self._current.reader.pause_or_resume_splits(
                self._own(to_pause, self._current.number),
                self._own(to_resume, self._current.number),
            )

    def snapshot(self) -> list[Plain]:
        return [
            {"source": one.number, "split": split}
            for one in self._readers()
            for split in one.reader.snapshot()
        ]

    def covered(self, splits: list[Plain]) -> None:
        for one in self._readers():
            own = [split["split"] for split in splits if split["source"] == one.number]
            one.reader.covered(own)
        past, self._past = self._past, []
        for one in past:
            self._retire(one)

    def close(self) -> None:
        readers = self._readers()
        self._current, self._past = None, []
        for one in readers:
            one.reader.close()

    def _readers(self) -> list[_Current]:
        return [*self._past, *([] if self._current is None else [self._current])]

    def _retire(self, one: _Current) -> None:
        """A reader that has read all goes when nothing is left of it to be covered."""
        if one.reader.snapshot():
            self._past.append(one)
        else:
            one.reader.close()

    @staticmethod
    def _own(splits: list[Plain], number: int) -> list[Plain]:
        return [split[1] for split in splits if split is not None and split[0] == number]

    def _reader_of(self, number: int) -> SourceReader:
        """The reader of a source; the one before it has read all it had."""
        if self._current is None or self._current.number != number:
            if self._current is not None:
                self._retire(self._current)
            reader = self._sources[number].create_reader(self._context)
            reader.open()
            self._current = _Current(number, reader)
        return self._current.reader
