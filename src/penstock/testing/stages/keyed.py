"""Stages by key."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any

from penstock.checkpoint.handles import MAX_WATERMARK
from penstock.common.typeinfo import Types
from penstock.datastream import DataStream, KeyedProcessFunction, RuntimeContext
from penstock.datastream.state import ValueStateDescriptor
from penstock.testing.stages.base import ANY, Key, Place, Records, Stage, first, label, number
from penstock.testing.stages.tally import Tally


class KeyedStage(Stage, KeyedProcessFunction):
    """A stage that is a keyed function."""

    def __init__(self, key: Key) -> None:
        self.key = key

    def attach(self, stream: DataStream, place: Place) -> DataStream:
        return place(stream.key_by(self.key).process(self))

    def _counted(self, records: Records) -> Iterator[tuple[str, int, Any]]:
        """(key, how many of it so far, record) for every record."""
        counts: Counter[str] = Counter()
        for value in records:
            name = label(self.key(value))
            counts[name] += 1
            yield name, counts[name], value

    def _groups(self, records: Records) -> dict[str, Records]:
        groups: dict[str, Records] = {}
        for value in records:
            groups.setdefault(label(self.key(value)), []).append(value)
        return groups


class CountUp(KeyedStage):
    """(key, how many so far) for every record; after `cycle` of them it starts anew."""

    def __init__(self, key: Key, kind: str, cycle: int | None) -> None:
        super().__init__(key)
        self.kind = kind
        self.cycle = cycle

    def attach(self, stream: DataStream, place: Place) -> DataStream:
        # A declared type without mutable parts travels by reference.
        declared = Types.TUPLE([Types.STRING(), Types.LONG()]) if self.cycle is None else None
        return place(stream.key_by(self.key).process(self, declared))

    def open(self, runtime_context: RuntimeContext) -> None:
        self._tally = Tally(self.kind, runtime_context)

    def process_element(
        self, value: Any, ctx: KeyedProcessFunction.Context
    ) -> Iterator[tuple[str, int]]:
        count = self._tally.add(number(value))
        if count == self.cycle:
            self._tally.clear()
        yield label(ctx.get_current_key()), count

    def model(self, records: Records) -> Records:
        cycle = self.cycle or len(records)
        return [(name, (count - 1) % cycle + 1) for name, count, _ in self._counted(records)]


class Follow(KeyedStage):
    """(key, how many so far, the record's number): the order of the input shows."""

    def open(self, runtime_context: RuntimeContext) -> None:
        self._tally = Tally("value", runtime_context)

    def process_element(
        self, value: Any, ctx: KeyedProcessFunction.Context
    ) -> Iterator[tuple[str, int, int]]:
        n = number(value)
        yield label(ctx.get_current_key()), self._tally.add(n), n

    def model(self, records: Records) -> Records:
        return [(name, count, number(value)) for name, count, value in self._counted(records)]


class EmitState(KeyedStage):
    """Emits the very object that is its state, and goes on changing it."""

    def open(self, runtime_context: RuntimeContext) -> None:
        self._state = runtime_context.get_state(ValueStateDescriptor("live", ANY))

    def process_element(self, value: Any, ctx: KeyedProcessFunction.Context) -> Iterator[list[Any]]:
        live = self._state.value()
        if live is None:
            live = [label(ctx.get_current_key()), 0]
        live[1] += 1
        self._state.update(live)
        yield live

    def model(self, records: Records) -> Records:
        return [[name, count] for name, count, _ in self._counted(records)]


class AtEnd(KeyedStage):
    """(key, what all its numbers amount to), once, when event time ends."""

    def __init__(self, key: Key, kind: str) -> None:
        super().__init__(key)
        self.kind = kind

    def open(self, runtime_context: RuntimeContext) -> None:
        self._tally = Tally(self.kind, runtime_context)

    def process_element(self, value: Any, ctx: KeyedProcessFunction.Context) -> None:
        self._tally.add(number(value))
        ctx.timer_service().register_event_time_timer(MAX_WATERMARK)

    def on_timer(
        self, timestamp: int, ctx: KeyedProcessFunction.OnTimerContext
    ) -> list[tuple[str, Any]]:
        result = self._tally.result()
        self._tally.clear()
        return [(label(ctx.get_current_key()), result)]

    def model(self, records: Records) -> Records:
        return [
            (name, Tally.expected(self.kind, [number(value) for value in values]))
            for name, values in self._groups(records).items()
        ]


class Alarms(KeyedStage):
    """(key, time, rank) for every event-time timer: one per time, in order, none deleted."""

    def __init__(self, key: Key, times: int) -> None:
        super().__init__(key)
        self.times = times

    def open(self, runtime_context: RuntimeContext) -> None:
        self._rank = Tally("reducing", runtime_context)

    def process_element(self, value: Any, ctx: KeyedProcessFunction.Context) -> None:
        timers = ctx.timer_service()
        timers.register_event_time_timer(number(value) % self.times)
        timers.register_event_time_timer(self.times + 1)
        timers.delete_event_time_timer(self.times + 1)

    def on_timer(
        self, timestamp: int, ctx: KeyedProcessFunction.OnTimerContext
    ) -> Iterator[tuple[str, int, int]]:
        yield label(ctx.get_current_key()), timestamp, self._rank.add(1)

    def model(self, records: Records) -> Records:
        return [
            (name, time, rank)
            for name, values in self._groups(records).items()
            for rank, time in enumerate(sorted({number(v) % self.times for v in values}), 1)
        ]


class RunningCount(Stage):
    """As CountUp, by `reduce`."""

    def __init__(self, key: Key) -> None:
        self.key = key

    def _one(self, value: Any) -> tuple[str, int]:
        return label(self.key(value)), 1

    @staticmethod
    def _sum(left: tuple[str, int], right: tuple[str, int]) -> tuple[str, int]:
        return left[0], left[1] + right[1]

    def attach(self, stream: DataStream, place: Place) -> DataStream:
        return place(place(stream.map(self._one)).key_by(first).reduce(self._sum))

    def model(self, records: Records) -> Records:
        return CountUp(self.key, "value", None).model(records)
