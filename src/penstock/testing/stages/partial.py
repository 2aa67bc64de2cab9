"""Stages by key, with results that must be added up before they mean anything."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any

from penstock.checkpoint.handles import MAX_WATERMARK
from penstock.common.typeinfo import Types
from penstock.datastream import DataStream, KeyedProcessFunction, RuntimeContext
from penstock.datastream.state import ReducingStateDescriptor, ValueStateDescriptor
from penstock.testing.stages.base import Key, Place, Records, Stage, add, first, label, number
from penstock.testing.stages.keyed import KeyedStage


class Partial(KeyedStage):
    """(key, sum) of what came within some processing time; the sums of a key add up."""

    def __init__(self, key: Key, interval_ms: int) -> None:
        super().__init__(key)
        self.interval_ms = interval_ms

    def open(self, runtime_context: RuntimeContext) -> None:
        descriptor = ReducingStateDescriptor("sum", add, Types.LONG())
        self._sum = runtime_context.get_reducing_state(descriptor)

    def process_element(self, value: Any, ctx: KeyedProcessFunction.Context) -> None:
        timers = ctx.timer_service()
        if self._sum.get() is None:
            due = timers.current_processing_time() + self.interval_ms
            timers.register_processing_time_timer(due)
            timers.register_event_time_timer(MAX_WATERMARK)
        self._sum.add(1 + number(value) % 50)

    def on_timer(
        self, timestamp: int, ctx: KeyedProcessFunction.OnTimerContext
    ) -> Iterator[tuple[str, int]]:
        total = self._sum.get()
        if total is not None:
            self._sum.clear()
            yield label(ctx.get_current_key()), total

    def model(self, records: Records) -> Records:
        return [
            (name, sum(1 + number(value) % 50 for value in values))
            for name, values in self._groups(records).items()
        ]


class RunningSum(Stage):
    """(key, sum so far) by `reduce`; the last one of a key is the largest."""

    def __init__(self, key: Key) -> None:
        self.key = key

    def _weigh(self, value: Any) -> list[Any]:
        return [label(self.key(value)), 1 + number(value) % 50]

    @staticmethod
    def _sum(left: list[Any], right: list[Any]) -> list[Any]:
        left[1] += right[1]  # in place, as users do
        return left

    def attach(self, stream: DataStream, place: Place) -> DataStream:
        reduced = place(place(stream.map(self._weigh)).key_by(first).reduce(self._sum))
        return place(reduced.map(tuple))

    def model(self, records: Records) -> Records:
        sums: Counter[str] = Counter()
        for value in records:
            name, weight = self._weigh(value)
            sums[name] += weight
        return list(sums.items())


class Settle(Stage):
    """Turns results that must be added up into one per key, at the end of event time."""

    def __init__(self, largest: bool) -> None:
        self.largest = largest

    def attach(self, stream: DataStream, place: Place) -> DataStream:
        return place(stream.key_by(first).process(_Settler(self.largest)))

    def model(self, records: Records) -> Records:
        return list(records)


class _Settler(KeyedProcessFunction):
    def __init__(self, largest: bool) -> None:
        self._combine: Callable[[int, int], int] = max if largest else add

    def open(self, runtime_context: RuntimeContext) -> None:
        self._total = runtime_context.get_state(ValueStateDescriptor("total", Types.LONG()))

    def process_element(self, value: Any, ctx: KeyedProcessFunction.Context) -> None:
        total = self._total.value()
        self._total.update(value[1] if total is None else self._combine(total, value[1]))
        ctx.timer_service().register_event_time_timer(MAX_WATERMARK)

    def on_timer(
        self, timestamp: int, ctx: KeyedProcessFunction.OnTimerContext
    ) -> list[tuple[Any, Any]]:
        return [(ctx.get_current_key(), self._total.value())]
