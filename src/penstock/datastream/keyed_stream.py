"""A stream by key: what can be done with the records of one key."""

from __future__ import annotations

import enum
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from penstock.common.typeinfo import TypeInformation
from penstock.datastream import accumulate
from penstock.datastream.checks import need, refuse_generator
from penstock.datastream.program import Upstream
from penstock.datastream.streams import DataStream
from penstock.errors import ProgramError
from penstock.graph.operators import ProcessOperator, ReduceOperator
from penstock.runtime.functions import Function, KeyedProcessFunction
from penstock.runtime.windowing.assigners import WindowAssigner
from penstock.runtime.windowing.fixed_windows import count_windows

if TYPE_CHECKING:
    from penstock.datastream.cached_streams import CachedDataStream
    from penstock.datastream.interval_join import IntervalJoin
    from penstock.datastream.stream_execution_environment import StreamExecutionEnvironment
    from penstock.datastream.windowed_streams import WindowedStream


class KeyedStream(DataStream):
    """A stream by key."""

    class AccumulateType(enum.Enum):
        """The running aggregations of one field."""

        MIN = accumulate.Min
        MAX = accumulate.Max
        MIN_BY = accumulate.MinBy
        MAX_BY = accumulate.MaxBy
        SUM = accumulate.Sum

    def __init__(
        self,
        env: StreamExecutionEnvironment,
        upstreams: tuple[Upstream, ...],
        key_selector: Callable[[Any], Any],
        origin: DataStream,
    ) -> None:
        super().__init__(env, upstreams)
        self._key_selector = key_selector
        self._origin = origin

    def _unkeyed(self) -> DataStream:
        return self._origin

    def _key_for(self, func: Any) -> Callable[[Any], Any] | None:
        # A plain function cannot ask for state, so its records need no key.
        return self._key_selector if isinstance(func, Function) else None

    def process(self, func: Function, output_type: TypeInformation | None = None) -> DataStream:
        """Apply a function with state and timers of the record's key."""
        need(func, KeyedProcessFunction, "process() on a keyed stream")
        operator = ProcessOperator(func, "process_element", self._key_selector)
        return self._stream("KeyedProcess", operator, output_type)

    def interval_join(self, other_stream: KeyedStream) -> IntervalJoin:
        """Join with records of another keyed stream that happened close in time."""
        from penstock.datastream.interval_join import IntervalJoin

        need(other_stream, KeyedStream, "interval_join()")
        if other_stream._env is not self._env:
            raise ProgramError("interval_join() of streams that belong to different environments")
        return IntervalJoin(self, other_stream)

    def reduce(self, func: Any, output_type: TypeInformation | None = None) -> DataStream:
        """A running reduction per key: for every record the value so far."""
        bound = "reduce" if hasattr(func, "reduce") else None
        if bound is None and not callable(func):
            raise ProgramError(f"reduce() needs a function, not a {type(func).__name__}")
        refuse_generator(func.reduce if bound else func, "reduce")
        operator = ReduceOperator(func, bound, self._key_selector)
        return self._stream("Reduce", operator, output_type or self._type())

    def sum(self, position_to_sum: int | str = 0) -> DataStream:
        """The running sum per key of the field at this position, or of this name.

        The other fields are those of the key's first record. Where records are plain numbers the
        position is 0.
        """
        return self._accumulate(position_to_sum, self.AccumulateType.SUM)

    def min(self, position_to_min: int | str = 0) -> DataStream:
        """The running minimum of a field; the other fields are those of the first record."""
        return self._accumulate(position_to_min, self.AccumulateType.MIN)

    def max(self, position_to_max: int | str = 0) -> DataStream:
        """The running maximum of a field; the other fields are those of the first record."""
        return self._accumulate(position_to_max, self.AccumulateType.MAX)

    def min_by(self, position_to_min_by: int | str = 0) -> DataStream:
        """The record with the smallest value of a field so far; the earlier one of equals."""
        return self._accumulate(position_to_min_by, self.AccumulateType.MIN_BY)

    def max_by(self, position_to_max_by: int | str = 0) -> DataStream:
        """The record with the largest value of a field so far; the earlier one of equals."""
        return self._accumulate(position_to_max_by, self.AccumulateType.MAX_BY)

    def _accumulate(self, position: int | str, acc_type: AccumulateType) -> DataStream:
        function: accumulate.Accumulation = acc_type.value(position)
        name = acc_type.name.replace("_", " ").title()
        return self._stream(
            name, ReduceOperator(function, "reduce", self._key_selector), self._type()
        )

    def window(self, window_assigner: WindowAssigner[Any, Any]) -> WindowedStream:
        """The records of each key in windows."""
        from penstock.datastream.windowed_streams import WindowedStream

        return WindowedStream(self, window_assigner)

    def count_window(self, size: int, slide: int = 0) -> WindowedStream:
        """Windows of `size` records of a key; with a slide, one begins every so many records."""
        return self.window(count_windows(size, slide))

    def key_by(self, key_selector: Any, key_type: TypeInformation | None = None) -> KeyedStream:
        """The stream by another key."""
        return self._origin.key_by(key_selector, key_type)

    def union(self, *streams: DataStream) -> DataStream:
        """The stream and others, as one; not by key any more."""
        return self._origin.union(*streams)

    def cache(self) -> CachedDataStream:
        """Not on a keyed stream: keep what is before key_by(), or what a keyed function made."""
        raise ProgramError(
            "a keyed stream cannot be cached; call cache() before key_by(), or on what the keyed "
            "function returned"
        )

    # Records of a key must stay together: another rule would undo what key_by() promised.

    def _refuse_partitioning(self, *_: Any) -> Any:
        """Not on a keyed stream: it is partitioned by its key."""
        raise ProgramError(
            "a keyed stream is partitioned by its key; call this before key_by(), or on what the "
            "keyed function returned"
        )

    rebalance = _refuse_partitioning
    rescale = _refuse_partitioning
    shuffle = _refuse_partitioning
    global_ = _refuse_partitioning
    forward = _refuse_partitioning
    broadcast = _refuse_partitioning  # type: ignore[assignment]

    def partition_custom(self, partitioner: Any, key_selector: Any) -> DataStream:
        """Not on a keyed stream: it is partitioned by its key."""
        return self._refuse_partitioning()  # type: ignore[no-any-return]
