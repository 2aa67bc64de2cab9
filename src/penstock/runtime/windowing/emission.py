"""From what a window holds to what it emits.

A result is a tuple of three: the id of the side output (None: the main one), the record, and its
timestamp, which is the last one of the window.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NoReturn

from penstock.common.output_tag import OutputTag
from penstock.errors import LateRecordError, ProgramError, ResultShapeError
from penstock.metrics import Counter
from penstock.runtime.functions import Function, KeyedStateStore, RuntimeContext, TimerService
from penstock.runtime.window_functions import (
    AllWindowFunction,
    ProcessAllWindowFunction,
    ProcessWindowFunction,
    WindowFunction,
)
from penstock.runtime.windowing.scoped_state import (
    NoWindowStateStore,
    Scope,
    ScopedStates,
    WindowStateStore,
)
from penstock.runtime.windowing.windows import Window

Result = tuple[str | None, Any, int | None]

LATE_RECORDS = "numLateRecordsDropped"


class WindowContext(
    ProcessWindowFunction.Context[Window], ProcessAllWindowFunction.Context[Window]
):
    """The context of a process window function; one object, used again and again."""

    def __init__(
        self, runtime_context: RuntimeContext, states: ScopedStates, scope: Scope, merging: bool
    ) -> None:
        store = NoWindowStateStore if merging else WindowStateStore
        self._window_state = store(states, runtime_context)
        self._global_state = runtime_context
        self._scope = scope
        self.times: TimerService

    def window(self) -> Window:
        return self._scope.key[1]  # type: ignore[no-any-return]

    def current_processing_time(self) -> int:
        return self.times.current_processing_time()

    def current_watermark(self) -> int:
        return self.times.current_watermark()

    def window_state(self) -> KeyedStateStore:
        return self._window_state

    def global_state(self) -> KeyedStateStore:
        return self._global_state


class Emission:
    """The window function of an operator, whatever its kind."""

    def __init__(self, function: Any) -> None:
        self.function = function

    def open(
        self, runtime_context: RuntimeContext, states: ScopedStates, scope: Scope, merging: bool
    ) -> None:
        self.context = WindowContext(runtime_context, states, scope, merging)
        self._scope = scope
        if isinstance(self.function, Function):
            self.function.open(runtime_context)

    def close(self) -> None:
        if isinstance(self.function, Function):
            self.function.close()

    def emit(self, key: Any, window: Window, elements: Any) -> Iterator[Result]:
        """What the function makes of a window."""
        function = self.function
        self._scope.key = (key, window)
        produced: Any
        if isinstance(function, ProcessWindowFunction):
            produced = function.process(key, self.context, elements)
        elif isinstance(function, ProcessAllWindowFunction):
            produced = function.process(self.context, elements)
        elif isinstance(function, AllWindowFunction):
            produced = function.apply(window, elements)
        elif isinstance(function, WindowFunction):
            produced = function.apply(key, window, elements)
        else:
            produced = function(key, window, elements)
        return _results(produced, window.max_timestamp())

    def clear(self, key: Any, window: Window) -> None:
        """The window is gone."""
        if isinstance(self.function, ProcessWindowFunction | ProcessAllWindowFunction):
            self._scope.key = (key, window)
            self.function.clear(self.context)


def _results(produced: Any, timestamp: int) -> Iterator[Result]:
    if produced is None:
        return
    if produced.__class__ in (str, bytes, dict):
        raise ResultShapeError(
            f"a window function returned a {type(produced).__name__} where a list, a generator or "
            "None is expected; wrap it in a list to emit it as one record"
        )
    for value in produced:
        if value.__class__ is tuple and len(value) == 2 and value[0].__class__ is OutputTag:
            yield value[0].tag_id, value[1], timestamp
        else:
            yield None, value, timestamp


def result_of(value: Any, timestamp: int) -> tuple[Result, ...]:
    """The result of a window without a function; None is no result."""
    return () if value is None else ((None, value, timestamp),)


class LateRecords:
    """What happens to records whose windows are all closed."""

    def __init__(self, tag: str | None, fail: bool, dropped: Counter) -> None:
        self._tag = tag
        self._fail = fail
        self._dropped = dropped

    def met(self, value: Any, timestamp: int, watermark: int) -> tuple[Result, ...]:
        """A record came too late: into the side output, or counted and dropped, or an error."""
        if self._tag is not None:
            return ((self._tag, value, timestamp),)
        if self._fail:
            raise LateRecordError(
                f"a record with timestamp {timestamp} met the watermark {watermark}: all its "
                "windows are closed; allow more out-of-orderness or lateness, take late records "
                "with side_output_late_data(), or set penstock.late-records to drop"
            )
        self._dropped.inc()
        return ()


def refuse_untimed() -> NoReturn:
    """A record of a window in event time has no timestamp."""
    raise ProgramError(
        "a record has no timestamp, which windows in event time need; call "
        "assign_timestamps_and_watermarks() before the window"
    )
