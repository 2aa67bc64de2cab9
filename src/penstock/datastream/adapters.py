"""PyFlink's adapters between what users write and one way to call it, by PyFlink's names.

Programs seldom need them. Those that do call window functions themselves, for example in a test:

>>> class Largest(WindowFunction):
...     def apply(self, key, window, inputs):
...         yield key, max(inputs)
>>> list(InternalIterableWindowFunction(Largest()).process("tea", None, None, [2, 3, 1]))
[('tea', 3)]

The name says what the operator hands over: `SingleValue` one record, `Iterable` many; `All` where
the stream has no keys.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable
from typing import Any

from penstock.runtime.functions import Function, KeyedStateStore, ReduceFunction, RuntimeContext
from penstock.runtime.window_functions import (
    AllWindowFunction,
    ProcessAllWindowFunction,
    ProcessWindowFunction,
    WindowFunction,
)

Results = Iterable[Any] | None


class FunctionWrapper(Function):
    """A plain function as a Function."""

    def __init__(self, func: Callable[..., Any]) -> None:
        self._func = func


class ReduceFunctionWrapper(FunctionWrapper, ReduceFunction):
    """A plain function of two values as a ReduceFunction."""

    def reduce(self, value1: Any, value2: Any) -> Any:
        return self._func(value1, value2)


class InternalWindowFunction(Function):
    """A window function of any kind, called in one way."""

    class InternalWindowContext(ABC):
        """The time, and state."""

        @abstractmethod
        def current_processing_time(self) -> int:
            """The clock."""

        @abstractmethod
        def current_watermark(self) -> int:
            """How far event time has come."""

        @abstractmethod
        def window_state(self, window: Any) -> KeyedStateStore:
            """State of the key and the window."""

        @abstractmethod
        def global_state(self) -> KeyedStateStore:
            """State of the key, shared by all its windows."""

    @abstractmethod
    def process(
        self, key: Any, window: Any, context: InternalWindowContext, input_data: Any
    ) -> Results:
        """What the window function makes of the window's content."""

    @abstractmethod
    def clear(self, window: Any, context: InternalWindowContext) -> None:
        """The window is gone."""


class _Adapter(InternalWindowFunction):
    def __init__(self, wrapped_function: Any) -> None:
        self._wrapped_function = wrapped_function

    def open(self, runtime_context: RuntimeContext) -> None:
        self._wrapped_function.open(runtime_context)

    def close(self) -> None:
        self._wrapped_function.close()

    def clear(self, window: Any, context: InternalWindowFunction.InternalWindowContext) -> None: ...


Context = InternalWindowFunction.InternalWindowContext


class InternalIterableWindowFunction(_Adapter):
    """Calls a WindowFunction with many records."""

    _wrapped_function: WindowFunction[Any, Any, Any, Any]

    def process(self, key: Any, window: Any, context: Context, input_data: Any) -> Results:
        return self._wrapped_function.apply(key, window, input_data)


class InternalSingleValueWindowFunction(InternalIterableWindowFunction):
    """Calls a WindowFunction with one record."""

    def process(self, key: Any, window: Any, context: Context, input_data: Any) -> Results:
        return super().process(key, window, context, [input_data])


class InternalIterableAllWindowFunction(_Adapter):
    """Calls an AllWindowFunction with many records."""

    _wrapped_function: AllWindowFunction[Any, Any, Any]

    def process(self, key: Any, window: Any, context: Context, input_data: Any) -> Results:
        return self._wrapped_function.apply(window, input_data)


class InternalSingleValueAllWindowFunction(InternalIterableAllWindowFunction):
    """Calls an AllWindowFunction with one record."""

    def process(self, key: Any, window: Any, context: Context, input_data: Any) -> Results:
        return super().process(key, window, context, [input_data])


class _OfWindow:
    """The context of a process function: one window's view of the operator's context."""

    def __init__(self) -> None:
        self._underlying: Any = None
        self._window: Any = None

    def of(self, window: Any, underlying: Context) -> Any:
        self._window, self._underlying = window, underlying
        return self

    def window(self) -> Any:
        return self._window

    def current_processing_time(self) -> int:
        return int(self._underlying.current_processing_time())

    def current_watermark(self) -> int:
        return int(self._underlying.current_watermark())

    def window_state(self) -> Any:
        return self._underlying.window_state(self._window)

    def global_state(self) -> Any:
        return self._underlying.global_state()


class InternalProcessWindowContext(_OfWindow, ProcessWindowFunction.Context[Any]):
    """What a ProcessWindowFunction is called with."""


class InternalProcessAllWindowContext(_OfWindow, ProcessAllWindowFunction.Context[Any]):
    """What a ProcessAllWindowFunction is called with."""


class InternalIterableProcessWindowFunction(_Adapter):
    """Calls a ProcessWindowFunction with many records."""

    def __init__(self, wrapped_function: ProcessWindowFunction[Any, Any, Any, Any]) -> None:
        super().__init__(wrapped_function)
        self._context = InternalProcessWindowContext()

    def process(self, key: Any, window: Any, context: Context, input_data: Any) -> Results:
        of_window = self._context.of(window, context)
        results: Results = self._wrapped_function.process(key, of_window, input_data)
        return results

    def clear(self, window: Any, context: Context) -> None:
        self._wrapped_function.clear(self._context.of(window, context))


class InternalSingleValueProcessWindowFunction(InternalIterableProcessWindowFunction):
    """Calls a ProcessWindowFunction with one record."""

    def process(self, key: Any, window: Any, context: Context, input_data: Any) -> Results:
        return super().process(key, window, context, [input_data])


class InternalIterableProcessAllWindowFunction(_Adapter):
    """Calls a ProcessAllWindowFunction with many records."""

    def __init__(self, wrapped_function: ProcessAllWindowFunction[Any, Any, Any]) -> None:
        super().__init__(wrapped_function)
        self._context = InternalProcessAllWindowContext()

    def process(self, key: Any, window: Any, context: Context, input_data: Any) -> Results:
        of_window = self._context.of(window, context)
        results: Results = self._wrapped_function.process(of_window, input_data)
        return results

    def clear(self, window: Any, context: Context) -> None:
        self._wrapped_function.clear(self._context.of(window, context))


class InternalSingleValueProcessAllWindowFunction(InternalIterableProcessAllWindowFunction):
    """Calls a ProcessAllWindowFunction with one record."""

    def process(self, key: Any, window: Any, context: Context, input_data: Any) -> Results:
        return super().process(key, window, context, [input_data])
