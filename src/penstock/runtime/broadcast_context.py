"""The contexts of functions with a broadcast side; one object each, used again and again."""

from __future__ import annotations

from typing import Any, NoReturn

from penstock.errors import ProgramError
from penstock.runtime.context import ElementContext, KeyedTimerService, TimerContext, Times
from penstock.runtime.two_input_functions import BaseBroadcastProcessFunction
from penstock.state.broadcast import BroadcastBackend
from penstock.state.descriptors import MapStateDescriptor
from penstock.state.interfaces import BroadcastState, ReadOnlyBroadcastState


class _TimesContext(BaseBroadcastProcessFunction.BaseContext):
    def __init__(self, times: Times, backend: BroadcastBackend) -> None:
        self._times = times
        self._backend = backend
        self.stamp: int | None = None

    def timestamp(self) -> int | None:
        return self.stamp

    def current_processing_time(self) -> int:
        return self._times.current_processing_time()

    def current_watermark(self) -> int:
        return self._times.current_watermark()

    def timer_service(self) -> NoReturn:
        """Not here: this says so, where a missing method would not say why."""
        raise ProgramError(
            "timers belong to a key, and there is none here: register them in process_element() "
            "of a keyed stream"
        )


class WritingContext(_TimesContext, BaseBroadcastProcessFunction.Context):
    """For `process_broadcast_element`."""

    def get_broadcast_state(self, state_descriptor: MapStateDescriptor) -> BroadcastState[Any, Any]:
        return self._backend.writable(state_descriptor)


class ReadingContext(_TimesContext, BaseBroadcastProcessFunction.ReadOnlyContext):
    """For `process_element` of a stream that is not keyed."""

    def get_broadcast_state(
        self, state_descriptor: MapStateDescriptor
    ) -> ReadOnlyBroadcastState[Any, Any]:
        return self._backend.read_only(state_descriptor.name)


class _Reads:
    """The broadcast side of a keyed context."""

    backend: BroadcastBackend
    _timers: KeyedTimerService

    def get_broadcast_state(
        self, state_descriptor: MapStateDescriptor
    ) -> ReadOnlyBroadcastState[Any, Any]:
        return self.backend.read_only(state_descriptor.name)

    def current_processing_time(self) -> int:
        return self._timers.current_processing_time()

    def current_watermark(self) -> int:
        return self._timers.current_watermark()


class KeyedReadingContext(_Reads, ElementContext):
    """For `process_element` of a keyed stream."""


class ReadingTimerContext(_Reads, TimerContext):
    """For `on_timer`."""
