"""The functions of two streams, by PyFlink's names.

The two streams may have records of different kinds. A function sees them in any order: what must
wait for the other side waits in state.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable
from typing import Any

from penstock.runtime.functions import (
    Function,
    KeyedProcessFunction,
    ProcessFunction,
    TimeDomain,
    TimerService,
)
from penstock.state.descriptors import MapStateDescriptor
from penstock.state.interfaces import BroadcastState, ReadOnlyBroadcastState


class CoMapFunction(Function):
    """One record for one record, of either stream."""

    @abstractmethod
    def map1(self, value: Any) -> Any:
        """One record for a record of the first stream."""

    @abstractmethod
    def map2(self, value: Any) -> Any:
        """One record for a record of the second stream."""


class CoFlatMapFunction(Function):
    """Any number of records for one record, of either stream."""

    @abstractmethod
    def flat_map1(self, value: Any) -> Iterable[Any] | None:
        """Any number of records for a record of the first stream."""

    @abstractmethod
    def flat_map2(self, value: Any) -> Iterable[Any] | None:
        """Any number of records for a record of the second stream."""


class CoProcessFunction(Function):
    """A function of either stream's records, with side outputs; without state or timers."""

    Context = ProcessFunction.Context

    @abstractmethod
    def process_element1(self, value: Any, ctx: ProcessFunction.Context) -> Any:
        """Called for every record of the first stream, as `ProcessFunction.process_element`."""

    @abstractmethod
    def process_element2(self, value: Any, ctx: ProcessFunction.Context) -> Any:
        """Called for every record of the second stream, as `process_element1`."""


class KeyedCoProcessFunction(Function):
    """A function of either stream's records, with state and timers that both share by key."""

    Context = KeyedProcessFunction.Context
    OnTimerContext = KeyedProcessFunction.OnTimerContext

    @abstractmethod
    def process_element1(self, value: Any, ctx: KeyedProcessFunction.Context) -> Any:
        """Called for every record of the first stream; may be a generator."""

    @abstractmethod
    def process_element2(self, value: Any, ctx: KeyedProcessFunction.Context) -> Any:
        """Called for every record of the second stream; may be a generator."""

    def on_timer(self, timestamp: int, ctx: KeyedProcessFunction.OnTimerContext) -> Any:
        """Called when a timer is due."""


class BaseBroadcastProcessFunction(Function):
    """What both functions with a broadcast side have in common."""

    class BaseContext(ABC):
        """The time of the record. Not to be kept after the call."""

        @abstractmethod
        def timestamp(self) -> int | None:
            """The timestamp of the record, None if it has none."""

        @abstractmethod
        def current_processing_time(self) -> int:
            """The slot's clock, in milliseconds since the epoch."""

        @abstractmethod
        def current_watermark(self) -> int:
            """How far event time has come in this subtask."""

    class Context(BaseContext):
        """For records of the broadcast side: the state may be written."""

        @abstractmethod
        def get_broadcast_state(
            self, state_descriptor: MapStateDescriptor
        ) -> BroadcastState[Any, Any]:
            """This subtask's copy of the map, to read and to write."""

    class ReadOnlyContext(BaseContext):
        """For records of the other side: the state may be read."""

        @abstractmethod
        def get_broadcast_state(
            self, state_descriptor: MapStateDescriptor
        ) -> ReadOnlyBroadcastState[Any, Any]:
            """This subtask's copy of the map, to read."""


class BroadcastProcessFunction(BaseBroadcastProcessFunction):
    """Records of one stream, met by what another stream has told all subtasks."""

    @abstractmethod
    def process_element(self, value: Any, ctx: BaseBroadcastProcessFunction.ReadOnlyContext) -> Any:
        """Called for every record of the stream that is not broadcast; may be a generator."""

    @abstractmethod
    def process_broadcast_element(
        self, value: Any, ctx: BaseBroadcastProcessFunction.Context
    ) -> Any:
        """Must do the same in every subtask: they all see the same records."""


class KeyedBroadcastProcessFunction(BaseBroadcastProcessFunction):
    """The same with state and timers of the record's key on the side that is not broadcast."""

    class ReadOnlyContext(BaseBroadcastProcessFunction.ReadOnlyContext):
        """The same, with the key of the record."""

        @abstractmethod
        def timer_service(self) -> TimerService:
            """What time it is, and the timers of the current key."""

        @abstractmethod
        def get_current_key(self) -> Any:
            """The key of the record, or of the timer."""

    class OnTimerContext(ReadOnlyContext):
        """The key of the timer. Not to be kept after the call."""

        @abstractmethod
        def time_domain(self) -> TimeDomain:
            """Which clock the timer followed."""

    @abstractmethod
    def process_element(
        self, value: Any, ctx: KeyedBroadcastProcessFunction.ReadOnlyContext
    ) -> Any:
        """Called for every record of the keyed stream; may be a generator."""

    @abstractmethod
    def process_broadcast_element(
        self, value: Any, ctx: BaseBroadcastProcessFunction.Context
    ) -> Any:
        """Must do the same in every subtask: they all see the same records."""

    def on_timer(self, timestamp: int, ctx: KeyedBroadcastProcessFunction.OnTimerContext) -> Any:
        """Called when a timer is due."""
