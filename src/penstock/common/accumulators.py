"""Accumulators: values that subtasks gather each for itself and that are merged at the end.

The names are Flink's. `add` takes a value in, `get_local_value` is what one subtask has gathered,
`merge` adds another subtask's.

>>> here, there = AverageAccumulator(), AverageAccumulator()
>>> here.add(1), here.add(2), there.add(6)
(None, None, None)
>>> here.merge(there)
>>> here.get_local_value()
3.0
"""

from __future__ import annotations

import copy
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from penstock.errors import ProgramError

V = TypeVar("V")
R = TypeVar("R")


class Accumulator(ABC, Generic[V, R]):
    """Gathers values of type V into a result of type R. May be subclassed by users."""

    @abstractmethod
    def add(self, value: V) -> None:
        """Take one value in."""

    @abstractmethod
    def get_local_value(self) -> R:
        """What was gathered here."""

    @abstractmethod
    def reset_local(self) -> None:
        """Forget what was gathered here."""

    @abstractmethod
    def merge(self, other: Any) -> None:
        """Take in what another accumulator of the same type has gathered."""


class _Sum(Accumulator[V, V]):
    """The sum of the values."""

    _ZERO: Any = 0

    def __init__(self, value: Any = None) -> None:
        self._value = self._ZERO if value is None else value

    def add(self, value: V) -> None:
        """Add `value`."""
        self._value += value

    def get_local_value(self) -> V:
        """The sum so far."""
        return self._value  # type: ignore[no-any-return]

    def reset_local(self) -> None:
        """Begin at zero again."""
        self._value = self._ZERO

    def merge(self, other: _Sum[V]) -> None:
        """Add the sum of another."""
        self._value += other._value


class IntCounter(_Sum[int]):
    """A sum of ints."""


class LongCounter(_Sum[int]):
    """A sum of ints; in Python the same as an `IntCounter`."""


class DoubleCounter(_Sum[float]):
    """A sum of floats."""

    _ZERO = 0.0


class AverageAccumulator(Accumulator[float, float]):
    """The average of the values; 0.0 while there is none, as in Flink."""

    def __init__(self) -> None:
        self._count = 0
        self._sum = 0.0

    def add(self, value: float) -> None:
        """Take one value in."""
        self._count += 1
        self._sum += value

    def get_local_value(self) -> float:
        """The average so far."""
        return self._sum / self._count if self._count else 0.0

    def reset_local(self) -> None:
        """Forget all values."""
        self._count, self._sum = 0, 0.0

    def merge(self, other: AverageAccumulator) -> None:
        """Take in the values of another."""
        self._count += other._count
        self._sum += other._sum


class _Extreme(Accumulator[V, "V | None"]):
    """The least or the greatest value; None while there is none."""

    def __init__(self, value: V | None = None) -> None:
        self._value = value

    def add(self, value: V) -> None:
        """Take one value in."""
        self._value = value if self._value is None else self._pick(self._value, value)

    def get_local_value(self) -> V | None:
        """The least or greatest value so far."""
        return self._value

    def reset_local(self) -> None:
        """Forget all values."""
        self._value = None

    def merge(self, other: _Extreme[V]) -> None:
        """Take in the value of another."""
        if other._value is not None:
            self.add(other._value)

    @abstractmethod
    def _pick(self, one: Any, other: Any) -> Any: ...


class _Minimum(_Extreme[V]):
    def _pick(self, one: Any, other: Any) -> Any:
        return min(one, other)


class _Maximum(_Extreme[V]):
    def _pick(self, one: Any, other: Any) -> Any:
        return max(one, other)


class IntMinimum(_Minimum[int]):
    """The least of the values."""


class LongMinimum(_Minimum[int]):
    """The least of the values; in Python the same as an `IntMinimum`."""


class DoubleMinimum(_Minimum[float]):
    """The least of the values."""


class IntMaximum(_Maximum[int]):
    """The greatest of the values."""


class LongMaximum(_Maximum[int]):
    """The greatest of the values; in Python the same as an `IntMaximum`."""


class DoubleMaximum(_Maximum[float]):
    """The greatest of the values."""


class Histogram(Accumulator[int, "dict[int, int]"]):
    """How often each value came, by value in ascending order."""

    def __init__(self) -> None:
        self._counts: dict[int, int] = {}

    def add(self, value: int) -> None:
        """Take one value in."""
        self._counts[value] = self._counts.get(value, 0) + 1

    def get_local_value(self) -> dict[int, int]:
        """Number of times by value."""
        return dict(sorted(self._counts.items()))

    def reset_local(self) -> None:
        """Forget all values."""
        self._counts.clear()

    def merge(self, other: Histogram) -> None:
        """Add the counts of another."""
        for value, count in other._counts.items():
            self._counts[value] = self._counts.get(value, 0) + count


class ListAccumulator(Accumulator[V, "list[V]"]):
    """All values, those of one subtask in order. It is sent whole: meant for few values."""

    def __init__(self) -> None:
        self._values: list[V] = []

    def add(self, value: V) -> None:
        """Append `value`."""
        self._values.append(value)

    def get_local_value(self) -> list[V]:
        """All values so far."""
        return list(self._values)

    def reset_local(self) -> None:
        """Forget all values."""
        self._values.clear()

    def merge(self, other: ListAccumulator[V]) -> None:
        """Append the values of another."""
        self._values.extend(other._values)


@dataclass(frozen=True)
class FailedAccumulator:
    """Stands where a result would be that could not be merged, and says why."""

    reason: str


def merged_results(parts: Iterable[Mapping[str, Accumulator[Any, Any]]]) -> dict[str, Any]:
    """The results by name over all `parts`; what cannot be merged is a `FailedAccumulator`."""
    merged: dict[str, Accumulator[Any, Any]] = {}
    results: dict[str, Any] = {}
    for part in parts:
        for name, accumulator in part.items():
            if name in results:
                continue
            try:
                if name not in merged:
                    merged[name] = copy.deepcopy(accumulator)
                elif type(merged[name]) is not type(accumulator):
                    kinds = f"{type(merged[name]).__name__} and as {type(accumulator).__name__}"
                    results[name] = FailedAccumulator(f"it was added both as {kinds}")
                else:
                    merged[name].merge(accumulator)
            except Exception as error:
                results[name] = FailedAccumulator(f"merging failed: {error!r}")
    for name, whole in merged.items():
        if name not in results:
            try:
                results[name] = whole.get_local_value()
            except Exception as error:
                results[name] = FailedAccumulator(f"get_local_value() failed: {error!r}")
    return dict(sorted(results.items()))


def checked_result(name: str, results: Mapping[str, Any]) -> Any:
    """The result `name`; ProgramError if there is none or it could not be merged."""
    if name not in results:
        known = ", ".join(results) or "none"
        raise ProgramError(f"there is no accumulator {name!r}; there are: {known}")
    result = results[name]
    if isinstance(result, FailedAccumulator):
        raise ProgramError(f"accumulator {name!r} has no result: {result.reason}")
    return result
