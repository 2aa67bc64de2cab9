"""What a window holds of its records: one accumulator where the function allows it, else a list.

`first` makes the contents of a window's first record, `fold` adds a record, `merge` brings the
contents of two windows together, `result` is what the window function is given (as `elements`) or,
without one, what is emitted. A window whose result is None has nothing to emit.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable
from typing import Any

from penstock.errors import ProgramError, ResultShapeError
from penstock.runtime.functions import Function, RuntimeContext
from penstock.runtime.windowing.evictors import TimestampedValue


class Contents(ABC):
    """A way to hold records. `fold` may change the contents that it is given, and returns them."""

    associative = False
    """Whether contents of parts of a window can be merged, in the order of time, into its own."""
    function: Any = None
    """The user's function, to be opened and closed."""
    none_stays = False
    """Whether contents that are None stay so, whatever is added to them."""

    @abstractmethod
    def first(self, value: Any) -> Any: ...

    @abstractmethod
    def fold(self, contents: Any, value: Any) -> Any: ...

    def folder(self) -> Callable[[Any, Any], Any]:
        """The function behind `fold`, as directly as can be: it is called for every record.

        Where `none_stays` it is not to be called with contents that are None.
        """
        return self.fold

    @abstractmethod
    def merge(self, contents: Any, other: Any) -> Any: ...

    def merger(self) -> Callable[[Any, Any], Any]:
        """The same for `merge`."""
        return self.merge

    @abstractmethod
    def result(self, contents: Any) -> Any: ...

    def elements(self, contents: Any) -> Iterable[Any]:
        """What a window function is given; nothing if it is not to be called."""
        result = self.result(contents)
        return () if result is None else (result,)

    def open(self, runtime_context: RuntimeContext) -> None:
        if isinstance(self.function, Function):
            self.function.open(runtime_context)

    def close(self) -> None:
        if isinstance(self.function, Function):
            self.function.close()


class ReducedContents(Contents):
    """One value, into which records are reduced. One that the function made None stays so."""

    none_stays = True

    def __init__(self, function: Any, associative: bool = False) -> None:
        self.function = function
        self.associative = associative
        self._reduce: Callable[[Any, Any], Any] = getattr(function, "reduce", function)
        if not callable(self._reduce):
            raise ProgramError(
                f"reduce() needs a function or an object with a method reduce, not a "
                f"{type(function).__name__}"
            )

    def folder(self) -> Callable[[Any, Any], Any]:
        return self._reduce

    def merger(self) -> Callable[[Any, Any], Any]:
        return self._reduce

    def first(self, value: Any) -> Any:
        return value

    def fold(self, contents: Any, value: Any) -> Any:
        return None if contents is None else self._reduce(contents, value)

    def merge(self, contents: Any, other: Any) -> Any:
        if contents is None or other is None:
            return other if contents is None else contents
        return self._reduce(contents, other)

    def result(self, contents: Any) -> Any:
        return contents


class AggregatedContents(Contents):
    """The accumulator of an AggregateFunction."""

    def __init__(self, function: Any) -> None:
        self.function = function
        for method in ("create_accumulator", "add", "get_result"):
            if not callable(getattr(function, method, None)):
                raise ProgramError(
                    f"aggregate() needs an AggregateFunction; {type(function).__name__} has no "
                    f"method {method}"
                )
        self.associative = _can_merge(function)

    def first(self, value: Any) -> Any:
        return self.function.add(value, self.function.create_accumulator())

    def fold(self, contents: Any, value: Any) -> Any:
        return self.function.add(value, contents)

    def merge(self, contents: Any, other: Any) -> Any:
        merged = self.function.merge(contents, other)
        if merged is None and contents is not None:
            raise ResultShapeError(
                f"merge() of {type(self.function).__name__} returned None; windows that merge, "
                "such as sessions, need the accumulator of both"
            )
        return merged

    def merger(self) -> Callable[[Any, Any], Any]:
        return self.function.merge  # type: ignore[no-any-return]

    def result(self, contents: Any) -> Any:
        return self.function.get_result(contents)


def _can_merge(function: Any) -> bool:
    """Whether `merge` does something: many leave it out, as only some windows need it."""
    try:
        empty = function.create_accumulator()
        merged = function.merge(empty, function.create_accumulator())
    except Exception:
        # Not written, or it needs open() first: the plain way does without it.
        return False
    return merged is not None or empty is None


class ListedContents(Contents):
    """All records."""

    def first(self, value: Any) -> Any:
        return [value]

    def fold(self, contents: Any, value: Any) -> Any:
        contents.append(value)
        return contents

    def merge(self, contents: Any, other: Any) -> Any:
        contents.extend(other)
        return contents

    def result(self, contents: Any) -> Any:
        return contents

    def elements(self, contents: Any) -> Iterable[Any]:
        return contents  # type: ignore[no-any-return]


class EvictableContents(ListedContents):
    """All records with their timestamps, for an evictor; reduced, if at all, when they fire.

    The records are given to `fold` as TimestampedValue.
    """

    def __init__(self, inner: Contents) -> None:
        self.inner = inner
        self.function = inner.function

    def result(self, contents: list[TimestampedValue]) -> Any:
        """The result of those that are left; a window of which none are has no result."""
        elements = iter(contents)
        folded = self.inner.first(next(elements).value)
        for element in elements:
            folded = self.inner.fold(folded, element.value)
        return self.inner.result(folded)

    def elements(self, contents: list[TimestampedValue]) -> Iterable[Any]:
        if isinstance(self.inner, ListedContents):
            return [element.value for element in contents]
        return super(ListedContents, self).elements(contents)
