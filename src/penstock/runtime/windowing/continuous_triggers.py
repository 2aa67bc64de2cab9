"""Triggers that fire again and again while a window lasts."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any, TypeVar

from penstock.common.time import Time
from penstock.common.typeinfo import Types
from penstock.errors import ProgramError
from penstock.runtime.windowing.checks import check_length
from penstock.runtime.windowing.triggers import QuietTrigger, Trigger, TriggerResult
from penstock.runtime.windowing.windows import Window
from penstock.state.descriptors import ReducingStateDescriptor
from penstock.state.interfaces import ReducingState

T = TypeVar("T")
W = TypeVar("W", bound=Window)


class _ContinuousTrigger(QuietTrigger[T, W]):
    """Fires at every multiple of an interval while the window lasts."""

    def __init__(self, interval: int) -> None:
        self.interval = check_length(interval, type(self).__name__, "interval")
        self._next_fire = ReducingStateDescriptor("fire-time", min, Types.LONG())

    def can_merge(self) -> bool:
        return True

    @abstractmethod
    def _register(self, ctx: Trigger.TriggerContext, time: int) -> None: ...

    @abstractmethod
    def _delete(self, ctx: Trigger.TriggerContext, time: int) -> None: ...

    def _begin(self, timestamp: int, window: W, ctx: Trigger.TriggerContext) -> None:
        state = ctx.get_partitioned_state(self._next_fire)
        if state.get() is None:
            began = timestamp - timestamp % self.interval
            self.register_next_fire_timestamp(began, window, ctx, state)

    def _due(self, time: int, window: W, ctx: Trigger.TriggerContext) -> TriggerResult:
        state = ctx.get_partitioned_state(self._next_fire)
        if state.get() != time:
            return TriggerResult.CONTINUE
        state.clear()
        # At its end the window is removed: nothing more is to come.
        if time < window.max_timestamp():
            self.register_next_fire_timestamp(time, window, ctx, state)
        return TriggerResult.FIRE

    def on_merge(self, window: W, ctx: Trigger.OnMergeContext) -> None:
        ctx.merge_partitioned_state(self._next_fire)
        due = ctx.get_partitioned_state(self._next_fire).get()
        if due is not None:
            self._register(ctx, due)

    def clear(self, window: W, ctx: Trigger.TriggerContext) -> None:
        state = ctx.get_partitioned_state(self._next_fire)
        due = state.get()
        if due is not None:
            self._delete(ctx, due)
            state.clear()

    def register_next_fire_timestamp(
        self,
        time: int,
        window: W,
        ctx: Trigger.TriggerContext,
        fire_timestamp_state: ReducingState[int],
    ) -> None:
        """Set the timer that follows `time`; the last one is at the end of the window."""
        due = min(time + self.interval, window.max_timestamp())
        fire_timestamp_state.add(due)
        self._register(ctx, due)


class ContinuousEventTimeTrigger(_ContinuousTrigger[T, W]):
    """Fires when the watermark passes a multiple of the interval, and at the window's end."""

    @staticmethod
    def of(interval: Time) -> ContinuousEventTimeTrigger[Any, Any]:
        """Fire every `interval` of event time."""
        return ContinuousEventTimeTrigger(interval.to_milliseconds())

    def on_element(
        self, element: T, timestamp: int, window: W, ctx: Trigger.TriggerContext
    ) -> TriggerResult:
        if timestamp is None:
            raise ProgramError(
                "a ContinuousEventTimeTrigger needs records with timestamps; call "
                "assign_timestamps_and_watermarks() before the window"
            )
        if window.max_timestamp() <= ctx.get_current_watermark():
            return TriggerResult.FIRE
        ctx.register_event_time_timer(window.max_timestamp())
        self._begin(timestamp, window, ctx)
        return TriggerResult.CONTINUE

    def on_event_time(self, time: int, window: W, ctx: Trigger.TriggerContext) -> TriggerResult:
        if time == window.max_timestamp():
            return TriggerResult.FIRE
        return self._due(time, window, ctx)

    def clear(self, window: W, ctx: Trigger.TriggerContext) -> None:
        super().clear(window, ctx)
        ctx.delete_event_time_timer(window.max_timestamp())

    def _register(self, ctx: Trigger.TriggerContext, time: int) -> None:
        ctx.register_event_time_timer(time)

    def _delete(self, ctx: Trigger.TriggerContext, time: int) -> None:
        ctx.delete_event_time_timer(time)


class ContinuousProcessingTimeTrigger(_ContinuousTrigger[T, W]):
    """Fires when the clock passes a multiple of the interval, and at the window's end."""

    @staticmethod
    def of(interval: Time) -> ContinuousProcessingTimeTrigger[Any, Any]:
        """Fire every `interval` of processing time."""
        return ContinuousProcessingTimeTrigger(interval.to_milliseconds())

    def on_element(
        self, element: T, timestamp: int, window: W, ctx: Trigger.TriggerContext
    ) -> TriggerResult:
        self._begin(ctx.get_current_processing_time(), window, ctx)
        return TriggerResult.CONTINUE

    def on_processing_time(
        self, time: int, window: W, ctx: Trigger.TriggerContext
    ) -> TriggerResult:
        return self._due(time, window, ctx)

    def _register(self, ctx: Trigger.TriggerContext, time: int) -> None:
        ctx.register_processing_time_timer(time)

    def _delete(self, ctx: Trigger.TriggerContext, time: int) -> None:
        ctx.delete_processing_time_timer(time)
