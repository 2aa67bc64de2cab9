"""Two streams joined in windows, by the names of Flink's Java API: PyFlink lacks them.

    payments.join(refunds) \
        .where(lambda payment: payment["id"]).equal_to(lambda refund: refund["payment"]) \
        .window(TumblingEventTimeWindows.of(Time.minutes(5))) \
        .apply(lambda payment, refund: (payment["id"], refund["amount"]))

The streams become one of records that say which side they are from; its windows hold both.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any, TypeVar

from penstock.common.typeinfo import TypeInformation
from penstock.datastream.checks import need, need_callable
from penstock.datastream.streams import DataStream
from penstock.datastream.windowed_streams import WindowedStream
from penstock.errors import ProgramError
from penstock.runtime.functions import Function, RuntimeContext
from penstock.runtime.window_functions import (
    FlatJoinFunction,
    WindowFunction,
)
from penstock.runtime.windowing.assigners import WindowAssigner
from penstock.runtime.windowing.evictors import Evictor
from penstock.runtime.windowing.triggers import Trigger

Tagged = tuple[int, Any]
S = TypeVar("S", bound="_WithWindow")


class _TwoStreams:
    """Two streams whose keys are still to be named: `where(...).equal_to(...).window(...)`."""

    _windowed: Callable[..., Any]
    _what: str

    def __init__(self, stream1: DataStream, stream2: DataStream) -> None:
        need(stream2, DataStream, f"{self._what}()")
        if stream1._env is not stream2._env:
            raise ProgramError(f"{self._what}() of streams that belong to different environments")
        self._streams = (stream1, stream2)

    def where(self, key_selector: Any) -> Where:
        """The key of the first stream's records."""
        return Where(self, need_callable(key_selector, "get_key", "where"))


class Where:
    """Two streams, of which the first has a key."""

    def __init__(self, streams: _TwoStreams, key1: Callable[[Any], Any]) -> None:
        self._joined = streams
        self._key1 = key1

    def equal_to(self, key_selector: Any) -> EqualTo:
        """The key of the second stream's records, which is to equal the first's."""
        return EqualTo(self._joined, self._key1, need_callable(key_selector, "get_key", "equal_to"))


class EqualTo:
    """Two streams with keys."""

    def __init__(
        self, streams: _TwoStreams, key1: Callable[[Any], Any], key2: Callable[[Any], Any]
    ) -> None:
        self._joined = streams
        self._keys = (key1, key2)

    def window(self, assigner: WindowAssigner[Any, Any]) -> Any:
        """The windows in which records meet."""
        first, second = self._joined._streams
        left = first.map(lambda value: (0, value)).name("First Input")
        right = second.map(lambda value: (1, value)).name("Second Input")
        keys = self._keys
        keyed = left.union(right).key_by(lambda tagged: keys[tagged[0]](tagged[1]))
        return self._joined._windowed(WindowedStream(keyed, assigner))


class _WithWindow:
    """Two streams with keys and windows."""

    def __init__(self, windowed: WindowedStream) -> None:
        self._stream = windowed

    def trigger(self: S, trigger: Trigger[Any, Any]) -> S:
        """Fire when `trigger` says so. It sees records as `(0 or 1, record)`."""
        self._stream.trigger(trigger)
        return self

    def evictor(self: S, evictor: Evictor) -> S:
        """Let `evictor` take records out. It sees records as `(0 or 1, record)`."""
        self._stream.evictor(evictor)
        return self

    def allowed_lateness(self: S, time_ms: int) -> S:
        """Keep windows for so long after the watermark has passed their end."""
        self._stream.allowed_lateness(time_ms)
        return self


class JoinedWithWindow(_WithWindow):
    """Pairs of records with equal keys in one window."""

    def apply(self, function: Any, output_type: TypeInformation | None = None) -> DataStream:
        """A result for every pair: of a JoinFunction or a plain function one, of a
        FlatJoinFunction any number.
        """
        call = need_callable(function, "join", "apply", may_yield=True)
        flat = isinstance(function, FlatJoinFunction)
        joined = _Join(function, call, flat)
        return self._stream.apply(joined, output_type).name("Window Join")


class CoGroupedWithWindow(_WithWindow):
    """All records with equal keys in one window, of both streams; one may have none."""

    def apply(self, function: Any, output_type: TypeInformation | None = None) -> DataStream:
        """Any number of results from the lists of the two streams' records."""
        call = need_callable(function, "co_group", "apply", may_yield=True)
        return self._stream.apply(_CoGroup(function, call), output_type).name("CoGroup")


class JoinedStreams(_TwoStreams):
    """Two streams, to be joined: `join(...)`."""

    _windowed = JoinedWithWindow
    _what = "join"


class CoGroupedStreams(_TwoStreams):
    """Two streams, to be grouped together: `co_group(...)`."""

    _windowed = CoGroupedWithWindow
    _what = "co_group"


class _TwoSided(WindowFunction[Tagged, Any, Any, Any]):
    """A window function that tells the sides apart for a user's function."""

    def __init__(self, function: Any, call: Callable[[Any, Any], Any]) -> None:
        self._function = function
        self._call = call

    def open(self, runtime_context: RuntimeContext) -> None:
        if isinstance(self._function, Function):
            self._function.open(runtime_context)

    def close(self) -> None:
        if isinstance(self._function, Function):
            self._function.close()

    @staticmethod
    def _sides(inputs: Iterable[Tagged]) -> tuple[list[Any], list[Any]]:
        sides: tuple[list[Any], list[Any]] = ([], [])
        for side, value in inputs:
            sides[side].append(value)
        return sides


class _Join(_TwoSided):
    def __init__(self, function: Any, call: Callable[[Any, Any], Any], flat: bool) -> None:
        super().__init__(function, call)
        self._flat = flat

    def apply(self, key: Any, window: Any, inputs: Iterable[Tagged]) -> Iterator[Any]:
        first, second = self._sides(inputs)
        for one in first:
            for other in second:
                if self._flat:
                    yield from self._call(one, other) or ()
                else:
                    yield self._call(one, other)


class _CoGroup(_TwoSided):
    def apply(self, key: Any, window: Any, inputs: Iterable[Tagged]) -> Any:
        return self._call(*self._sides(inputs))
