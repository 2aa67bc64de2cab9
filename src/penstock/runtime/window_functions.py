"""Functions of windows, by PyFlink's names; those of joined streams, which it lacks, by Flink's."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable
from typing import Any, Generic, TypeVar

from penstock.runtime.functions import Function, KeyedStateStore
from penstock.runtime.windowing.windows import Window

IN = TypeVar("IN")
OUT = TypeVar("OUT")
KEY = TypeVar("KEY")
W = TypeVar("W", bound=Window)
W2 = TypeVar("W2", bound=Window)


class WindowFunction(Function, Generic[IN, OUT, KEY, W]):
    """A function of a key's window and its records."""

    @abstractmethod
    def apply(self, key: KEY, window: W, inputs: Iterable[IN]) -> Iterable[OUT] | None:
        """Any number of results; may be a generator."""


class AllWindowFunction(Function, Generic[IN, OUT, W]):
    """A function of a window and its records, where the stream has no keys."""

    @abstractmethod
    def apply(self, window: W, inputs: Iterable[IN]) -> Iterable[OUT] | None:
        """Any number of results; may be a generator."""


class _Context(ABC, Generic[W]):
    """The window, the time, and state. Not to be kept after the call."""

    @abstractmethod
    def window(self) -> W: ...

    @abstractmethod
    def current_processing_time(self) -> int: ...

    @abstractmethod
    def current_watermark(self) -> int: ...

    @abstractmethod
    def window_state(self) -> KeyedStateStore:
        """State of the key and the window; `clear` must remove it. Sessions have none."""

    @abstractmethod
    def global_state(self) -> KeyedStateStore:
        """State of the key, shared by all its windows."""


class ProcessWindowFunction(Function, Generic[IN, OUT, KEY, W]):
    """A function of a key's window and its records, with a context and state."""

    class Context(_Context[W2]):
        """The window, the time, and state. Not to be kept after the call."""

    @abstractmethod
    def process(
        self, key: KEY, context: ProcessWindowFunction.Context[W], elements: Iterable[IN]
    ) -> Iterable[OUT] | None:
        """Any number of results; may be a generator.

        A result `tag, record` with an OutputTag goes to that side output.
        """

    def clear(self, context: ProcessWindowFunction.Context[W]) -> None:
        """The window is gone: remove what is in its `window_state`."""


class ProcessAllWindowFunction(Function, Generic[IN, OUT, W]):
    """The same where the stream has no keys."""

    class Context(_Context[W2]):
        """The window, the time, and state. Not to be kept after the call."""

    @abstractmethod
    def process(
        self, context: ProcessAllWindowFunction.Context[W], elements: Iterable[IN]
    ) -> Iterable[OUT] | None:
        """Any number of results; may be a generator.

        A result `tag, record` with an OutputTag goes to that side output.
        """

    def clear(self, context: ProcessAllWindowFunction.Context[W]) -> None:
        """The window is gone: remove what is in its `window_state`."""


class PassThroughWindowFunction(WindowFunction[IN, IN, KEY, W]):
    """The records as they are."""

    def apply(self, key: KEY, window: W, inputs: Iterable[IN]) -> Iterable[IN]:
        return inputs


class PassThroughAllWindowFunction(AllWindowFunction[IN, IN, W]):
    """The records as they are."""

    def apply(self, window: W, inputs: Iterable[IN]) -> Iterable[IN]:
        return inputs


class JoinFunction(Function):
    """One result for every pair of records of two streams with one key and window."""

    @abstractmethod
    def join(self, first: Any, second: Any) -> Any:
        """What to emit for the pair."""


class FlatJoinFunction(Function):
    """Any number of results for every pair."""

    @abstractmethod
    def join(self, first: Any, second: Any) -> Iterable[Any] | None:
        """The records to emit for the pair."""


class CoGroupFunction(Function):
    """A function of all records of two streams with one key and window; one side may be empty."""

    @abstractmethod
    def co_group(self, first: list[Any], second: list[Any]) -> Iterable[Any] | None:
        """The records to emit for the two sides."""
