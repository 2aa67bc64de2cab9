"""A collection as a source: a list that travels with the program."""

from __future__ import annotations

import pickle
from collections.abc import Iterable
from typing import Any

from penstock.common.plain import Plain
from penstock.common.unpicklable import why
from penstock.connectors.source import (
    EnumeratorContext,
    QueueEnumerator,
    ReaderContext,
    Source,
    SourceReader,
    SplitEnumerator,
)
from penstock.errors import ProgramError


class CollectionSource(Source):
    """Emits the elements of a collection in order; one reader reads all of it."""

    def __init__(self, elements: Iterable[Any]) -> None:
        # Pickled at once, so that the program holds what the list was when it was handed over.
        try:
            self._elements = [pickle.dumps(element, protocol=5) for element in elements]
        except Exception as error:
            raise ProgramError(
                f"an element of the collection cannot be pickled: {why(error)}"
            ) from error

    @staticmethod
    def of_pickled(elements: list[bytes]) -> CollectionSource:
        """The same for elements that are pickled already."""
        source = CollectionSource(())
        source._elements = elements
        return source

    def create_enumerator(
        self, context: EnumeratorContext, restored: Plain | None
    ) -> SplitEnumerator:
        return QueueEnumerator([0] if restored is None else restored)

    def create_reader(self, context: ReaderContext) -> SourceReader:
        return _CollectionReader(self._elements)


class _CollectionReader(SourceReader):
    def __init__(self, elements: list[bytes]) -> None:
        self._elements = elements
        self._position: int | None = None

    def add_splits(self, splits: list[Plain]) -> None:
        (self._position,) = splits

    def poll(self, limit: int) -> list[Any] | None:
        start = self._position
        if start is None or start >= len(self._elements):
            return None
        self._position = min(start + limit, len(self._elements))
        return [pickle.loads(element) for element in self._elements[start : self._position]]

    def snapshot(self) -> list[Plain]:
        return [] if self._position is None else [self._position]
