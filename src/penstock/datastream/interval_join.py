"""Interval joins: `left.interval_join(right).between(lower, upper).process(function)`."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from penstock.common.output_tag import OutputTag
from penstock.common.time import Duration, Time
from penstock.common.typeinfo import TypeInformation
from penstock.datastream.checks import need
from penstock.datastream.program import Upstream
from penstock.errors import ProgramError
from penstock.graph.operators import IntervalJoinOperator
from penstock.runtime.interval_join import (
    IntervalJoinProcess,
    JoinInterval,
    PairFunction,
    ProcessJoinFunction,
)

if TYPE_CHECKING:
    from penstock.datastream.keyed_stream import KeyedStream
    from penstock.datastream.streams import DataStream

__all__ = ["IntervalJoin", "IntervalJoined", "ProcessJoinFunction"]


class IntervalJoin:
    """Two keyed streams, still without bounds."""

    def __init__(self, left: KeyedStream, right: KeyedStream) -> None:
        self._left = left
        self._right = right

    def between(self, lower_bound: Time | Duration, upper_bound: Time | Duration) -> IntervalJoined:
        """Join a record at time t with those of the other stream at t + lower to t + upper."""
        lower, upper = _millis(lower_bound), _millis(upper_bound)
        return IntervalJoined(self._left, self._right, JoinInterval(lower, upper))


class IntervalJoined:
    """Two keyed streams joined within bounds, which are included unless said otherwise."""

    def __init__(self, left: KeyedStream, right: KeyedStream, interval: JoinInterval) -> None:
        self._left = left
        self._right = right
        self._interval = interval

    def lower_bound_exclusive(self) -> IntervalJoined:
        """Leave the lower bound itself out."""
        return self._with(lower=self._interval.lower + 1)

    def upper_bound_exclusive(self) -> IntervalJoined:
        """Leave the upper bound itself out."""
        return self._with(upper=self._interval.upper - 1)

    def side_output_left_late_data(self, output_tag: OutputTag) -> IntervalJoined:
        """Send left records that come too late to this side output."""
        need(output_tag, OutputTag, "side_output_left_late_data()")
        return self._with(late_left=output_tag.tag_id)

    def side_output_right_late_data(self, output_tag: OutputTag) -> IntervalJoined:
        """Send right records that come too late to this side output."""
        need(output_tag, OutputTag, "side_output_right_late_data()")
        return self._with(late_right=output_tag.tag_id)

    def process(self, func: Any, output_type: TypeInformation | None = None) -> DataStream:
        """Call a ProcessJoinFunction, or a function of two records, for every pair."""
        from penstock.datastream.nodes import add_node
        from penstock.datastream.streams import DataStream

        if self._interval.lower > self._interval.upper:
            raise ProgramError(
                f"interval join: the lower bound {self._interval.lower} ms is above the upper "
                f"bound {self._interval.upper} ms"
            )
        if not isinstance(func, ProcessJoinFunction):
            if isinstance(func, type) or not callable(func):
                raise ProgramError(
                    "process() of an interval join needs a ProcessJoinFunction or a function of "
                    f"two records, not {func!r}"
                )
            func = PairFunction(func)
        left, right = self._left, self._right
        operator = IntervalJoinOperator(
            IntervalJoinProcess(func, self._interval),
            "process_element1",
            left._key_selector,
            "process_element2",
            right._key_selector,
        )
        second = tuple(replace(upstream, input=1) for upstream in right._upstreams)
        upstreams = left._upstreams + second
        node = add_node(left._env, "Interval Join", operator, output_type, upstreams)
        return DataStream(left._env, (Upstream(node, None),))

    def _with(self, **changed: Any) -> IntervalJoined:
        return IntervalJoined(self._left, self._right, replace(self._interval, **changed))


def _millis(bound: Time | Duration) -> int:
    if isinstance(bound, Duration):
        return bound.to_millis()
    need(bound, Time, "between()")
    return bound.to_milliseconds()
