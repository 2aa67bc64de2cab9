"""PyFlink's adapters around window functions call what they wrap."""

from __future__ import annotations

import pytest

from penstock.datastream.functions import (
    AllWindowFunction,
    InternalIterableAllWindowFunction,
    InternalIterableProcessAllWindowFunction,
    InternalIterableProcessWindowFunction,
    InternalIterableWindowFunction,
    InternalSingleValueAllWindowFunction,
    InternalSingleValueProcessAllWindowFunction,
    InternalSingleValueProcessWindowFunction,
    InternalSingleValueWindowFunction,
    InternalWindowFunction,
    ProcessAllWindowFunction,
    ProcessWindowFunction,
    ReduceFunctionWrapper,
    WindowFunction,
)


class Calls:
    """Remembers how it was opened, cleared and closed."""

    def __init__(self):
        self.seen = []

    def open(self, runtime_context):
        self.seen.append(("open", runtime_context))

    def close(self):
        self.seen.append("close")


class Keyed(Calls, WindowFunction):
    def apply(self, key, window, inputs):
        return [(key, window, list(inputs))]


class All(Calls, AllWindowFunction):
    def apply(self, window, inputs):
        return [(window, list(inputs))]


def times(context):
    return (
        context.window(),
        context.current_watermark(),
        context.current_processing_time(),
        context.window_state(),
        context.global_state(),
    )


class KeyedProcess(Calls, ProcessWindowFunction):
    def process(self, key, context, elements):
        return [(key, times(context), list(elements))]

    def clear(self, context):
        self.seen.append(("clear", context.window()))


class AllProcess(Calls, ProcessAllWindowFunction):
    def process(self, context, elements):
        return [(times(context), list(elements))]

    def clear(self, context):
        self.seen.append(("clear", context.window()))


class Context(InternalWindowFunction.InternalWindowContext):
    def current_processing_time(self):
        return 2

    def current_watermark(self):
        return 1

    def window_state(self, window):
        return f"state of {window}"

    def global_state(self):
        return "state"


OF_WINDOW = ("w", 1, 2, "state of w", "state")


@pytest.mark.parametrize(
    ("adapter", "function", "given", "result"),
    [
        (InternalIterableWindowFunction, Keyed, [1, 2], ("k", "w", [1, 2])),
        (InternalSingleValueWindowFunction, Keyed, 3, ("k", "w", [3])),
        (InternalIterableAllWindowFunction, All, [1, 2], ("w", [1, 2])),
        (InternalSingleValueAllWindowFunction, All, 3, ("w", [3])),
        (InternalIterableProcessWindowFunction, KeyedProcess, [1, 2], ("k", OF_WINDOW, [1, 2])),
        (InternalSingleValueProcessWindowFunction, KeyedProcess, 3, ("k", OF_WINDOW, [3])),
        (InternalIterableProcessAllWindowFunction, AllProcess, [1, 2], (OF_WINDOW, [1, 2])),
        (InternalSingleValueProcessAllWindowFunction, AllProcess, 3, (OF_WINDOW, [3])),
    ],
)
def test_an_adapter_calls_what_it_wraps(adapter, function, given, result):
    wrapped = function()
    adapted = adapter(wrapped)
    assert isinstance(adapted, InternalWindowFunction)
    adapted.open("context")
    assert adapted.process("k", "w", Context(), given) == [result]
    adapted.clear("w", Context())
    adapted.close()
    cleared = [("clear", "w")] if function in (KeyedProcess, AllProcess) else []
    assert wrapped.seen == [("open", "context"), *cleared, "close"]


def test_a_plain_function_reduces():
    assert ReduceFunctionWrapper(max).reduce(2, 3) == 3
