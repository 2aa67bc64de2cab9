"""The contexts that assigners, triggers and evictors are called with; one object each."""

from __future__ import annotations

from typing import Any

from penstock.metrics import MetricGroup
from penstock.runtime.functions import RuntimeContext
from penstock.runtime.windowing.assigners import WindowAssigner
from penstock.runtime.windowing.evictors import Evictor
from penstock.runtime.windowing.scoped_state import Scope, ScopedStates
from penstock.runtime.windowing.triggers import Trigger
from penstock.runtime.windowing.window_timers import WindowTimers
from penstock.runtime.windowing.windows import Window
from penstock.state.descriptors import StateDescriptor


class AssignerContext(WindowAssigner.WindowAssignerContext):
    def __init__(self, runtime_context: RuntimeContext, timers: WindowTimers) -> None:
        self._runtime_context = runtime_context
        self._timers = timers

    def get_current_processing_time(self) -> int:
        return self._timers.service.current_processing_time()

    def get_runtime_context(self) -> RuntimeContext:
        return self._runtime_context


class TriggerAndEvictorContext(Trigger.OnMergeContext, Evictor.EvictorContext):
    """Of the key and the window that `scope` names."""

    def __init__(
        self,
        runtime_context: RuntimeContext,
        timers: WindowTimers,
        states: ScopedStates,
        scope: Scope,
    ) -> None:
        self._runtime_context = runtime_context
        self._timers = timers
        self._states = states
        self._scope = scope
        self.merged: list[Window] = []
        """The windows that became one, while the trigger's `on_merge` is called."""

    def get_current_processing_time(self) -> int:
        return self._timers.service.current_processing_time()

    def get_metric_group(self) -> MetricGroup:
        return self._runtime_context.get_metrics_group()

    def get_current_watermark(self) -> int:
        return self._timers.service.current_watermark()

    def register_processing_time_timer(self, time: int) -> None:
        self._timers.register(*self._scope.key, False, time)

    def register_event_time_timer(self, time: int) -> None:
        self._timers.register(*self._scope.key, True, time)

    def delete_processing_time_timer(self, time: int) -> None:
        self._timers.delete(*self._scope.key, False, time)

    def delete_event_time_timer(self, time: int) -> None:
        self._timers.delete(*self._scope.key, True, time)

    def get_partitioned_state(self, state_descriptor: StateDescriptor) -> Any:
        return self._states.get(state_descriptor)

    def merge_partitioned_state(self, state_descriptor: StateDescriptor) -> None:
        self._states.merge(state_descriptor, self.merged, self._scope.key[1])
