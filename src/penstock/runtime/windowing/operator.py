"""The window operator: any assigner, trigger, evictor and function.

A record is added to what its windows hold, then the trigger is asked; a timer asks it again. When
the watermark has passed a window's end by the allowed lateness (or the clock its end), the window
is removed with all that belongs to it. The common windows have faster operators of their own, see
`choice`; they give the same results.
"""

from __future__ import annotations

import enum
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from typing import Any

from penstock import kept
from penstock.checkpoint.handles import MAX_WATERMARK
from penstock.errors import ProgramError, ResultShapeError
from penstock.runtime.context import OperatorContext
from penstock.runtime.functions import KeyedProcessFunction, TimeDomain
from penstock.runtime.windowing.assigners import MergingWindowAssigner, WindowAssigner
from penstock.runtime.windowing.contents import Contents
from penstock.runtime.windowing.contexts import AssignerContext, TriggerAndEvictorContext
from penstock.runtime.windowing.emission import (
    LATE_RECORDS,
    Emission,
    LateRecords,
    Result,
    refuse_untimed,
    result_of,
)
from penstock.runtime.windowing.evictors import Evictor, TimestampedValue
from penstock.runtime.windowing.scoped_state import Scope, ScopedStates
from penstock.runtime.windowing.triggers import Trigger, TriggerResult
from penstock.runtime.windowing.window_timers import WindowTimers
from penstock.runtime.windowing.windows import Window


@kept.named("Purged", lambda purged: (purged.value,))
class _Purged(enum.Enum):
    """Stands where a window that may still merge has had its contents thrown away."""

    PURGED = "purged"


PURGED = _Purged.PURGED


@dataclass(frozen=True)
class WindowSpec:
    """A window operation, as the program says it."""

    assigner: WindowAssigner[Any, Any]
    trigger: Trigger[Any, Any]
    contents: Contents
    function: Any = None
    """The window function; None where what the window holds is the result."""
    evictor: Evictor | None = None
    allowed_lateness: int = 0
    late_tag: str | None = None


class WindowBase(KeyedProcessFunction):
    """What all window operators have: their function, their state, and what to do with the late.

    They are called as a KeyedProcessFunction is; what they return are `Result`s.
    """

    layout = "windows"
    """How the table of windows is to be read: a checkpoint of another layout is refused."""

    def __init__(self, spec: WindowSpec) -> None:
        self.spec = spec
        self.contents = spec.contents
        self.emission = None if spec.function is None else Emission(spec.function)

    def open(self, runtime_context: Any) -> None:
        assert isinstance(runtime_context, OperatorContext)
        table = runtime_context.get_table("__windows", self.layout)
        self._entries: dict[Any, Any] = table.entries
        self._changed: set[Any] = table.changes.current
        self._scope = Scope()
        self._state_table = runtime_context.get_table("__window_states", "window states")
        dropped = runtime_context.get_metrics_group().counter(LATE_RECORDS)
        fail = runtime_context.fails_on_late_records()
        self._late = LateRecords(self.spec.late_tag, fail, dropped)
        self.contents.open(runtime_context)
        if self.emission is not None:
            states = ScopedStates("window", self._state_table, self._scope)
            merging = isinstance(self.spec.assigner, MergingWindowAssigner)
            self.emission.open(runtime_context, states, self._scope, merging)

    def close(self) -> None:
        self.contents.close()
        if self.emission is not None:
            self.emission.close()

    def _final(
        self, key: Any, window: Window, contents: Any, ctx: KeyedProcessFunction.Context
    ) -> Iterator[Result]:
        """The only result of a window with a function; it is gone then."""
        assert self.emission is not None
        self.emission.context.times = ctx.timer_service()
        if elements := self.contents.elements(contents):
            yield from self.emission.emit(key, window, elements)
        self.emission.clear(key, window)


class WindowProcess(WindowBase):
    """Windows of any kind."""

    def __init__(self, spec: WindowSpec) -> None:
        super().__init__(spec)
        self._assigner = spec.assigner
        self._trigger = spec.trigger
        self._event_time = spec.assigner.is_event_time()
        self._merging = isinstance(spec.assigner, MergingWindowAssigner)

    def open(self, runtime_context: Any) -> None:
        super().open(runtime_context)
        self._timers = WindowTimers(runtime_context.get_table("__window_timers", "window timers"))
        states = ScopedStates("trigger", self._state_table, self._scope)
        self._assigner_context = AssignerContext(runtime_context, self._timers)
        self._context = TriggerAndEvictorContext(runtime_context, self._timers, states, self._scope)

    # --- records ------------------------------------------------------------------------------

    def process_element(self, value: Any, ctx: KeyedProcessFunction.Context) -> Iterator[Result]:
        key, times = self._begin(ctx)
        timestamp: Any = ctx.timestamp()
        if timestamp is None and self._event_time:
            refuse_untimed()
        watermark = times.current_watermark()
        windows = self._assigner.assign_windows(value, timestamp, self._assigner_context)
        if not isinstance(windows, Collection):
            raise ResultShapeError(
                f"the assigner {type(self._assigner).__name__} returned a "
                f"{type(windows).__name__} where a list of windows is expected"
            )
        late = self._event_time and bool(windows)
        for assigned in windows:
            window = self._merge_in(key, assigned) if self._merging else assigned
            if self._event_time and self._cleanup_time(window) <= watermark:
                if self._merging:
                    self._drop(key, window)
                continue
            late = False
            self._add(key, window, value, timestamp)
            self._scope.key = (key, window)
            answer = self._trigger.on_element(value, timestamp, window, self._context)
            yield from self._react(answer, key, window)
            if (cleanup := self._cleanup_time(window)) < MAX_WATERMARK:
                self._timers.register(key, window, self._event_time, cleanup)
        if late:
            yield from self._late.met(value, timestamp, watermark)

    def on_timer(
        self, timestamp: int, ctx: KeyedProcessFunction.OnTimerContext
    ) -> Iterator[Result]:
        key, _ = self._begin(ctx)
        event_time = ctx.time_domain() is TimeDomain.EVENT_TIME
        if not event_time:
            # See `window_timers`.
            timestamp -= 1
        for window in self._timers.take(key, event_time, timestamp):
            if self._merging and window not in self._entries.get(key, ()):
                # Merged into another since.
                continue
            self._scope.key = (key, window)
            if event_time:
                answer = self._trigger.on_event_time(timestamp, window, self._context)
            else:
                answer = self._trigger.on_processing_time(timestamp, window, self._context)
            yield from self._react(answer, key, window)
            if event_time == self._event_time and timestamp == self._cleanup_time(window):
                self._remove(key, window)

    def _begin(self, ctx: KeyedProcessFunction.Context) -> tuple[Any, Any]:
        times = self._timers.service = ctx.timer_service()
        if self.emission is not None:
            self.emission.context.times = times
        return ctx.get_current_key(), times

    def _cleanup_time(self, window: Window) -> int:
        end = window.max_timestamp()
        return min(end + self.spec.allowed_lateness, MAX_WATERMARK) if self._event_time else end

    # --- what windows hold --------------------------------------------------------------------

    def _add(self, key: Any, window: Window, value: Any, timestamp: int | None) -> None:
        if self.spec.evictor is not None:
            value = TimestampedValue(value, timestamp)
        windows = self._entries.get(key)
        if windows is None:
            windows = self._entries[key] = {}
        held = windows.get(window, PURGED)
        if held is PURGED:
            windows[window] = self.contents.first(value)
        else:
            windows[window] = self.contents.fold(held, value)
        self._changed.add(key)

    def _drop(self, key: Any, window: Window) -> None:
        windows = self._entries.get(key)
        if windows is None or window not in windows:
            return
        del windows[window]
        if not windows:
            del self._entries[key]
        self._changed.add(key)

    def _react(self, answer: Any, key: Any, window: Window) -> Iterator[Result]:
        if answer.__class__ is not TriggerResult:
            raise ResultShapeError(
                f"the trigger {type(self._trigger).__name__} answered {answer!r}, which is not a "
                "TriggerResult"
            )
        if answer.is_fire():
            held = self._entries.get(key, {}).get(window, PURGED)
            if held is not PURGED:
                yield from self._fire(key, window, held)
        if answer.is_purge():
            if not self._merging:
                self._drop(key, window)
            elif window in self._entries.get(key, ()):
                self._entries[key][window] = PURGED
                self._changed.add(key)

    def _fire(self, key: Any, window: Window, held: Any) -> Iterator[Result]:
        evictor = self.spec.evictor
        if evictor is None:
            yield from self._result(key, window, held)
            return
        evictor.evict_before(held, len(held), window, self._context)
        if held:
            yield from self._result(key, window, held)
            self._scope.key = (key, window)
            evictor.evict_after(held, len(held), window, self._context)
        if not held and not self._merging:
            self._drop(key, window)
        self._changed.add(key)

    def _result(self, key: Any, window: Window, held: Any) -> Iterator[Result]:
        if self.emission is None:
            yield from result_of(self.contents.result(held), window.max_timestamp())
        elif elements := self.contents.elements(held):
            yield from self.emission.emit(key, window, elements)

    def _remove(self, key: Any, window: Window) -> None:
        """The window has passed: nothing of it stays."""
        self._drop(key, window)
        self._scope.key = (key, window)
        self._trigger.clear(window, self._context)
        if self.emission is not None:
            self.emission.clear(key, window)

    # --- merging ------------------------------------------------------------------------------

    def _merge_in(self, key: Any, window: Window) -> Window:
        """Let `window` join the windows of the key; the one that it is part of then."""
        assigner = self._assigner
        assert isinstance(assigner, MergingWindowAssigner)
        held = self._entries.get(key)
        if held is None:
            held = self._entries[key] = {}
        groups = _Groups()
        assigner.merge_windows(dict.fromkeys([*held, window]), groups)
        joined = window
        for members, result in groups.found:
            merged = [member for member in members if member in held]
            if window in members:
                joined = result
            if merged and merged != [result]:
                self._merge(key, held, merged, result)
        held.setdefault(joined, PURGED)
        self._changed.add(key)
        return joined

    def _merge(
        self, key: Any, held: dict[Window, Any], merged: list[Window], result: Window
    ) -> None:
        service = self._timers.service
        now = service.current_watermark() if self._event_time else service.current_processing_time()
        if self._cleanup_time(result) <= now:
            raise ProgramError(
                f"the window assigner merged {merged} into {result}, which has already passed: "
                "merging must not make a window end earlier"
            )
        self._scope.key = (key, result)
        self._context.merged = merged
        self._trigger.on_merge(result, self._context)
        contents: Any = PURGED
        for window in merged:
            if window != result:
                self._scope.key = (key, window)
                self._trigger.clear(window, self._context)
                self._timers.delete(key, window, self._event_time, self._cleanup_time(window))
            part = held.pop(window)
            if part is not PURGED:
                contents = part if contents is PURGED else self.contents.merge(contents, part)
        held[result] = contents


class _Groups(MergingWindowAssigner.MergeCallback[Any]):
    """Notes which windows become one."""

    def __init__(self) -> None:
        self.found: list[tuple[list[Any], Any]] = []

    def merge(self, to_be_merged: Any, merge_result: Any) -> None:
        self.found.append((list(to_be_merged), merge_result))
