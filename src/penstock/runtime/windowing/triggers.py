"""Triggers: when a window gives its result.

A trigger hears of every record and of every timer that it set, and answers with a TriggerResult.
Its state and its timers belong to one key and one window.
"""

from __future__ import annotations

import operator
from abc import ABC, abstractmethod
from enum import Enum
from typing import Any, Generic, TypeVar

from penstock.common.typeinfo import Types
from penstock.errors import ProgramError
from penstock.metrics import MetricGroup
from penstock.runtime.windowing.checks import check_count
from penstock.runtime.windowing.windows import Window
from penstock.state.descriptors import ReducingStateDescriptor, StateDescriptor

T = TypeVar("T")
W = TypeVar("W", bound=Window)


class TriggerResult(Enum):
    """What is to happen with a window: give its result, throw away its contents, both, neither."""

    CONTINUE = (False, False)
    FIRE_AND_PURGE = (True, True)
    FIRE = (True, False)
    PURGE = (False, True)

    def is_fire(self) -> bool:
        """Whether the result is given."""
        return self.value[0]

    def is_purge(self) -> bool:
        """Whether the contents are thrown away."""
        return self.value[1]


class Trigger(ABC, Generic[T, W]):
    """Decides when a window gives its result. One object serves all keys and windows."""

    class TriggerContext(ABC):
        """Time, timers and state for the window in question."""

        @abstractmethod
        def get_current_processing_time(self) -> int:
            """What the slot's clock shows, in milliseconds since the epoch."""

        @abstractmethod
        def get_metric_group(self) -> MetricGroup:
            """Where the trigger registers metrics."""

        @abstractmethod
        def get_current_watermark(self) -> int:
            """How far event time has come."""

        @abstractmethod
        def register_processing_time_timer(self, time: int) -> None:
            """Call `on_processing_time` for this window when the clock shows `time`."""

        @abstractmethod
        def register_event_time_timer(self, time: int) -> None:
            """Call `on_event_time` for this window when the watermark reaches `time`."""

        @abstractmethod
        def delete_processing_time_timer(self, time: int) -> None:
            """Forget that timer."""

        @abstractmethod
        def delete_event_time_timer(self, time: int) -> None:
            """Forget that timer."""

        @abstractmethod
        def get_partitioned_state(self, state_descriptor: StateDescriptor) -> Any:
            """State of the key and the window."""

    class OnMergeContext(TriggerContext):
        """The same for windows that become one."""

        @abstractmethod
        def merge_partitioned_state(self, state_descriptor: StateDescriptor) -> None:
            """Bring the state of the merged windows together in the new one's."""

    @abstractmethod
    def on_element(
        self, element: T, timestamp: int, window: W, ctx: Trigger.TriggerContext
    ) -> TriggerResult:
        """A record was added; `timestamp` is None for one that has none."""

    @abstractmethod
    def on_processing_time(
        self, time: int, window: W, ctx: Trigger.TriggerContext
    ) -> TriggerResult:
        """A processing-time timer is due."""

    @abstractmethod
    def on_event_time(self, time: int, window: W, ctx: Trigger.TriggerContext) -> TriggerResult:
        """An event-time timer is due; also called when the window is about to be removed."""

    def can_merge(self) -> bool:
        """Whether `on_merge` is there, so that the trigger can be used with sessions."""
        return False

    @abstractmethod
    def on_merge(self, window: W, ctx: Trigger.OnMergeContext) -> None:
        """Windows were merged into `window`."""

    @abstractmethod
    def clear(self, window: W, ctx: Trigger.TriggerContext) -> None:
        """The window is gone: remove state and timers."""


class QuietTrigger(Trigger[T, W]):
    """A trigger that says nothing where its subclass does not."""

    def on_element(
        self, element: T, timestamp: int, window: W, ctx: Trigger.TriggerContext
    ) -> TriggerResult:
        return TriggerResult.CONTINUE

    def on_processing_time(
        self, time: int, window: W, ctx: Trigger.TriggerContext
    ) -> TriggerResult:
        return TriggerResult.CONTINUE

    def on_event_time(self, time: int, window: W, ctx: Trigger.TriggerContext) -> TriggerResult:
        return TriggerResult.CONTINUE

    def on_merge(self, window: W, ctx: Trigger.OnMergeContext) -> None:
        pass

    def clear(self, window: W, ctx: Trigger.TriggerContext) -> None:
        pass


class NeverTrigger(QuietTrigger[T, W]):
    """Never fires: the default of GlobalWindows."""


class EventTimeTrigger(QuietTrigger[T, W]):
    """Fires when the watermark passes the end of the window, and for every later record."""

    @staticmethod
    def create() -> EventTimeTrigger[Any, Any]:
        """The trigger; it has no settings."""
        return EventTimeTrigger()

    def on_element(
        self, element: T, timestamp: int, window: W, ctx: Trigger.TriggerContext
    ) -> TriggerResult:
        if window.max_timestamp() <= ctx.get_current_watermark():
            return TriggerResult.FIRE
        ctx.register_event_time_timer(window.max_timestamp())
        return TriggerResult.CONTINUE

    def on_event_time(self, time: int, window: W, ctx: Trigger.TriggerContext) -> TriggerResult:
        ended = time == window.max_timestamp()
        return TriggerResult.FIRE if ended else TriggerResult.CONTINUE

    def can_merge(self) -> bool:
        return True

    def on_merge(self, window: W, ctx: Trigger.OnMergeContext) -> None:
        # Past the watermark the record that caused the merge fires it.
        if window.max_timestamp() > ctx.get_current_watermark():
            ctx.register_event_time_timer(window.max_timestamp())

    def clear(self, window: W, ctx: Trigger.TriggerContext) -> None:
        ctx.delete_event_time_timer(window.max_timestamp())


class ProcessingTimeTrigger(QuietTrigger[T, W]):
    """Fires when the clock passes the end of the window."""

    @staticmethod
    def create() -> ProcessingTimeTrigger[Any, Any]:
        """The trigger; it has no settings."""
        return ProcessingTimeTrigger()

    def on_element(
        self, element: T, timestamp: int, window: W, ctx: Trigger.TriggerContext
    ) -> TriggerResult:
        ctx.register_processing_time_timer(window.max_timestamp())
        return TriggerResult.CONTINUE

    def on_processing_time(
        self, time: int, window: W, ctx: Trigger.TriggerContext
    ) -> TriggerResult:
        return TriggerResult.FIRE

    def can_merge(self) -> bool:
        return True

    def on_merge(self, window: W, ctx: Trigger.OnMergeContext) -> None:
        if window.max_timestamp() > ctx.get_current_processing_time():
            ctx.register_processing_time_timer(window.max_timestamp())

    def clear(self, window: W, ctx: Trigger.TriggerContext) -> None:
        ctx.delete_processing_time_timer(window.max_timestamp())


class CountTrigger(QuietTrigger[T, W]):
    """Fires whenever so many more records have come; the window keeps them."""

    def __init__(self, window_size: int) -> None:
        self._window_size = check_count(window_size, "CountTrigger")
        self._counted = ReducingStateDescriptor("count", operator.add, Types.LONG())

    @staticmethod
    def of(window_size: int) -> CountTrigger[Any, Any]:
        """Fire when so many records have come."""
        return CountTrigger(window_size)

    def on_element(
        self, element: T, timestamp: int, window: W, ctx: Trigger.TriggerContext
    ) -> TriggerResult:
        count = ctx.get_partitioned_state(self._counted)
        count.add(1)
        if count.get() < self._window_size:
            return TriggerResult.CONTINUE
        count.clear()
        return TriggerResult.FIRE

    def can_merge(self) -> bool:
        return True

    def on_merge(self, window: W, ctx: Trigger.OnMergeContext) -> None:
        ctx.merge_partitioned_state(self._counted)

    def clear(self, window: W, ctx: Trigger.TriggerContext) -> None:
        ctx.get_partitioned_state(self._counted).clear()


class PurgingTrigger(Trigger[T, W]):
    """Another trigger, whose every firing also throws the contents away."""

    def __init__(self, nested_trigger: Trigger[T, W]) -> None:
        if not isinstance(nested_trigger, Trigger):
            raise ProgramError(
                f"PurgingTrigger needs a Trigger, not a {type(nested_trigger).__name__}"
            )
        self.nested_trigger = nested_trigger

    @staticmethod
    def of(nested_trigger: Trigger[Any, Any]) -> PurgingTrigger[Any, Any]:
        """The trigger that purges whenever `nested_trigger` fires."""
        return PurgingTrigger(nested_trigger)

    @staticmethod
    def _purging(result: TriggerResult) -> TriggerResult:
        if isinstance(result, TriggerResult) and result.is_fire():
            return TriggerResult.FIRE_AND_PURGE
        return result

    def on_element(
        self, element: T, timestamp: int, window: W, ctx: Trigger.TriggerContext
    ) -> TriggerResult:
        return self._purging(self.nested_trigger.on_element(element, timestamp, window, ctx))

    def on_processing_time(
        self, time: int, window: W, ctx: Trigger.TriggerContext
    ) -> TriggerResult:
        return self._purging(self.nested_trigger.on_processing_time(time, window, ctx))

    def on_event_time(self, time: int, window: W, ctx: Trigger.TriggerContext) -> TriggerResult:
        return self._purging(self.nested_trigger.on_event_time(time, window, ctx))

    def can_merge(self) -> bool:
        return self.nested_trigger.can_merge()

    def on_merge(self, window: W, ctx: Trigger.OnMergeContext) -> None:
        self.nested_trigger.on_merge(window, ctx)

    def clear(self, window: W, ctx: Trigger.TriggerContext) -> None:
        self.nested_trigger.clear(window, ctx)
