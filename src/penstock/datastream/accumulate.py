"""Functions on one field of a record: running sums and extremes, and projections.

A record may be a tuple, a list, a dict, a Row, or a plain number, which is its own field 0.
"""

from __future__ import annotations

import copy
from collections.abc import Sequence
from typing import Any

from penstock.errors import ResultShapeError
from penstock.runtime.functions import MapFunction, ReduceFunction


class Accumulation(ReduceFunction):
    """A reduction by the field at `position`."""

    def __init__(self, position: int | str) -> None:
        self._position = position

    def _field(self, record: Any) -> Any:
        if isinstance(record, (int, float, complex)) and self._position == 0:
            return record
        try:
            return record[self._position]
        except (LookupError, TypeError) as error:
            raise ResultShapeError(
                f"a {type(record).__name__} has no field {self._position!r}: {record!r:.200}"
            ) from error

    def _with(self, record: Any, value: Any) -> Any:
        """A copy of `record` with another value in the field."""
        if isinstance(record, (int, float, complex)):
            return value
        if isinstance(record, tuple):
            position = self._position
            assert isinstance(position, int)
            fields = list(record)
            fields[position] = value
            # A named tuple is made from its fields one by one.
            make = getattr(type(record), "_make", type(record))
            return make(fields)
        copied = copy.copy(record)
        copied[self._position] = value
        return copied


class Sum(Accumulation):
    def reduce(self, value1: Any, value2: Any) -> Any:
        return self._with(value1, self._field(value1) + self._field(value2))


class Min(Accumulation):
    def reduce(self, value1: Any, value2: Any) -> Any:
        return self._with(value1, min(self._field(value1), self._field(value2)))


class Max(Accumulation):
    def reduce(self, value1: Any, value2: Any) -> Any:
        return self._with(value1, max(self._field(value1), self._field(value2)))


class MinBy(Accumulation):
    def reduce(self, value1: Any, value2: Any) -> Any:
        return value2 if self._field(value2) < self._field(value1) else value1


class MaxBy(Accumulation):
    def reduce(self, value1: Any, value2: Any) -> Any:
        return value2 if self._field(value2) > self._field(value1) else value1


class Projection(MapFunction):
    """Some fields of a record, as a tuple."""

    def __init__(self, positions: Sequence[int]) -> None:
        self._positions = tuple(positions)

    def map(self, value: Any) -> Any:
        try:
            return tuple(value[position] for position in self._positions)
        except (LookupError, TypeError) as error:
            raise ResultShapeError(
                f"a {type(value).__name__} has no fields {self._positions}: {value!r:.200}"
            ) from error


def same(value: Any) -> Any:
    """The record itself."""
    return value
