"""The interval join: pairs of records of two keyed streams that happened close to each other.

A record of the left stream at time l meets every record of the right one of the same key at time
r with ``lower <= r - l <= upper``, whichever comes first. Both sides wait in state, by timestamp,
until the watermark says that no partner can come any more.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from penstock.checkpoint.handles import MIN_WATERMARK
from penstock.common.output_tag import OutputTag
from penstock.common.typeinfo import Types
from penstock.errors import TimestampError
from penstock.runtime.functions import Function, RuntimeContext
from penstock.runtime.two_input_functions import KeyedCoProcessFunction
from penstock.state.descriptors import MapStateDescriptor
from penstock.state.interfaces import MapState


class ProcessJoinFunction(Function):
    """Makes any number of records of a pair; `yield tag, value` goes to a side output."""

    class Context:
        """When the two records of the pair happened. Not to be kept after the call."""

        def __init__(self) -> None:
            self.left = 0
            self.right = 0

        def get_left_timestamp(self) -> int:
            """The left record's timestamp."""
            return self.left

        def get_right_timestamp(self) -> int:
            """The right record's timestamp."""
            return self.right

        def get_timestamp(self) -> int:
            """The timestamp of what is emitted: the later of the two."""
            return max(self.left, self.right)

    @abstractmethod
    def process_element(self, left: Any, right: Any, ctx: ProcessJoinFunction.Context) -> Any:
        """Called once for every pair."""


@dataclass(frozen=True)
class JoinInterval:
    """The bounds of ``right - left`` in milliseconds, both included, and where late records go."""

    lower: int
    upper: int
    late_left: str | None = None
    late_right: str | None = None


Result = tuple["str | None", Any, int]


class IntervalJoinProcess(KeyedCoProcessFunction):
    """The operator behind an interval join; results come with their timestamps."""

    def __init__(self, function: Any, interval: JoinInterval) -> None:
        self._function = function
        self._interval = interval
        self._context = ProcessJoinFunction.Context()

    def open(self, runtime_context: RuntimeContext) -> None:
        self._lefts: MapState[int, list[Any]]
        self._rights: MapState[int, list[Any]]
        self._lefts = runtime_context.get_map_state(_waiting("left"))
        self._rights = runtime_context.get_map_state(_waiting("right"))
        self._late = runtime_context.get_metrics_group().counter("numLateRecordsDropped")
        opener = getattr(self._function, "open", None)
        if opener is not None:
            opener(runtime_context)

    def close(self) -> None:
        closer = getattr(self._function, "close", None)
        if closer is not None:
            closer()

    def process_element1(self, value: Any, ctx: Any) -> Iterator[Result]:
        bounds = self._interval
        at = _timestamp(ctx)
        if self._is_late(at, ctx):
            yield from self._refuse(value, at, bounds.late_left)
            return
        _keep(self._lefts, at, value)
        for other, right in _between(self._rights, at + bounds.lower, at + bounds.upper):
            yield from self._pair(value, right, at, other)
        ctx.timer_service().register_event_time_timer(at + max(bounds.upper, 0))

    def process_element2(self, value: Any, ctx: Any) -> Iterator[Result]:
        bounds = self._interval
        at = _timestamp(ctx)
        if self._is_late(at, ctx):
            yield from self._refuse(value, at, bounds.late_right)
            return
        _keep(self._rights, at, value)
        for other, left in _between(self._lefts, at - bounds.upper, at - bounds.lower):
            yield from self._pair(left, value, other, at)
        ctx.timer_service().register_event_time_timer(at + max(-bounds.lower, 0))

    def on_timer(self, timestamp: int, ctx: Any) -> None:
        # A record at the watermark itself is not late: what it may meet stays a moment longer.
        timers = ctx.timer_service()
        if timers.current_watermark() == timestamp:
            timers.register_event_time_timer(timestamp + 1)
        else:
            self._forget(timestamp)
        # What stayed for that reason, one moment ago.
        self._forget(timestamp - 1)

    def _forget(self, last: int) -> None:
        """Remove the records whose last possible partner is one at time `last`."""
        self._lefts.remove(last - max(self._interval.upper, 0))
        self._rights.remove(last - max(-self._interval.lower, 0))

    def _is_late(self, at: int, ctx: Any) -> bool:
        watermark = ctx.timer_service().current_watermark()
        return bool(watermark != MIN_WATERMARK and at < watermark)

    def _refuse(self, value: Any, at: int, tag: str | None) -> Iterator[Result]:
        if tag is None:
            self._late.inc()
        else:
            yield tag, value, at

    def _pair(self, left: Any, right: Any, left_at: int, right_at: int) -> Iterator[Result]:
        context = self._context
        context.left, context.right = left_at, right_at
        at = max(left_at, right_at)
        for result in self._function.process_element(left, right, context) or ():
            if isinstance(result, tuple) and len(result) == 2 and isinstance(result[0], OutputTag):
                yield result[0].tag_id, result[1], at
            else:
                yield None, result, at


class PairFunction(ProcessJoinFunction):
    """A plain function of two records as a join function; it gives one record for a pair."""

    def __init__(self, function: Callable[[Any, Any], Any]) -> None:
        self._function = function

    def process_element(self, left: Any, right: Any, ctx: Any) -> Any:
        return (self._function(left, right),)


def _waiting(name: str) -> MapStateDescriptor:
    return MapStateDescriptor(name, Types.LONG(), Types.PICKLED_BYTE_ARRAY())


def _timestamp(ctx: Any) -> int:
    at = ctx.timestamp()
    if at is None:
        raise TimestampError(
            "a record of an interval join has no timestamp; call "
            "assign_timestamps_and_watermarks() on both streams before"
        )
    return int(at)


def _keep(state: MapState[int, list[Any]], at: int, value: Any) -> None:
    kept = state.get(at)
    state.put(at, [value] if kept is None else [*kept, value])


def _between(state: MapState[int, list[Any]], low: int, high: int) -> Iterator[tuple[int, Any]]:
    # In the order of time, so that results do not depend on the order in which partners came.
    for at in sorted(at for at in state.keys() if low <= at <= high):  # noqa: SIM118
        for value in state.get(at) or ():
            yield at, value
