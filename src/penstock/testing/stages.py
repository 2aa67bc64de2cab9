"""The stages that random programs are made of, each told twice: to the engine and to a model.

A stage is *confluent*: what comes out, as a multiset, depends only on what goes in, as a multiset.
Its model says so in a few lines of plain Python over the list of all records. A stage may hold
state of any kind, set timers, mutate what it was given and what it gave away: none of that may
show in the result.

Any value is a record. `number` gives each one an integer to compute with, `label` gives equal keys
one name.
"""

from __future__ import annotations

import zlib
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any

from penstock.checkpoint.handles import MAX_WATERMARK
from penstock.common.typeinfo import Types
from penstock.datastream import (
    AggregateFunction,
    DataStream,
    KeyedProcessFunction,
    RuntimeContext,
)
from penstock.datastream.state import (
    AggregatingStateDescriptor,
    ListStateDescriptor,
    MapStateDescriptor,
    ReducingStateDescriptor,
    ValueStateDescriptor,
)

Records = list[Any]
Place = Callable[[DataStream], DataStream]
ANY = Types.PICKLED_BYTE_ARRAY()


def number(value: Any) -> int:
    """A number that depends on the value alone."""
    return value if type(value) is int else zlib.crc32(repr(value).encode())


def label(key: Any) -> str:
    """The same text for equal keys, also for 1, 1.0 and True."""
    if isinstance(key, tuple):
        return "(" + ",".join(label(part) for part in key) + ")"
    return repr(float(key)) if isinstance(key, (bool, int, float)) else repr(key)


class Key:
    """A key selector: `count` keys of one kind."""

    KINDS = ("int", "str", "float", "equal", "none", "tuple", "bytes")

    def __init__(self, kind: str, count: int) -> None:
        self.kind = kind
        self.count = count

    def __call__(self, value: Any) -> Any:
        n = number(value)
        place = n % self.count
        if self.kind == "equal":
            # Equal keys of three types share their state.
            return (place, float(place), place == 1 if place < 2 else place)[n // self.count % 3]
        return {
            "int": place - 2,
            "str": f"key-{place}",
            "float": place / 4,
            "none": place or None,
            "tuple": (place % 2 == 0, None if place % 3 else place, (place / 2,)),
            "bytes": bytes([place]),
        }[self.kind]

    def __repr__(self) -> str:
        return f"{self.count} {self.kind} keys"


class Stage(ABC):
    """One step of a program."""

    @abstractmethod
    def attach(self, stream: DataStream, place: Place) -> DataStream:
        """The step as the engine runs it; `place` lays out each operator."""

    @abstractmethod
    def model(self, records: Records) -> Records:
        """What comes out when `records` go in, in an order that the engine may give as well."""

    def __repr__(self) -> str:
        settings = ", ".join(f"{k}={v}" for k, v in vars(self).items() if not k.startswith("_"))
        return f"{type(self).__name__}({settings})"


# --- without state ----------------------------------------------------------------------------


class Scramble(Stage):
    """One record for one record."""

    def __init__(self, factor: int) -> None:
        self.factor = factor

    def __call__(self, value: Any) -> int:
        return (number(value) * self.factor + 1) % 100_003

    def attach(self, stream: DataStream, place: Place) -> DataStream:
        return place(stream.map(self, output_type=Types.LONG()))

    def model(self, records: Records) -> Records:
        return [self(value) for value in records]


class Sieve(Stage):
    """Only some of the records."""

    def __init__(self, divisor: int) -> None:
        self.divisor = divisor

    def __call__(self, value: Any) -> bool:
        return number(value) % self.divisor != 0

    def attach(self, stream: DataStream, place: Place) -> DataStream:
        return place(stream.filter(self))

    def model(self, records: Records) -> Records:
        return [value for value in records if self(value)]


class Burst(Stage):
    """None to three records for one record, and hundreds for a few."""

    def __init__(self, rare: int, size: int) -> None:
        self.rare = rare
        self.size = size

    def __call__(self, value: Any) -> Iterator[int]:
        n = number(value)
        count = self.size if n % 97 == self.rare else n % 4
        for i in range(count):
            yield (n + i * 13) % 100_003

    def attach(self, stream: DataStream, place: Place) -> DataStream:
        return place(stream.flat_map(self))

    def model(self, records: Records) -> Records:
        return [result for value in records for result in self(value)]


class Box(Stage):
    """Makes records that can be changed."""

    def __init__(self, nested: bool) -> None:
        self.nested = nested

    def __call__(self, value: Any) -> list[Any]:
        return [number(value), [0]] if self.nested else [number(value), 0]

    def attach(self, stream: DataStream, place: Place) -> DataStream:
        return place(stream.map(self))

    def model(self, records: Records) -> Records:
        return [self(value) for value in records]


class Scribble(Stage):
    """Changes the record that it was given, and passes it on."""

    def __init__(self, mark: int) -> None:
        self.mark = mark

    def __call__(self, value: Any) -> Any:
        if isinstance(value, list):
            if isinstance(value[-1], list):
                value[-1].append(self.mark)
            value.append(self.mark)
        return value

    def attach(self, stream: DataStream, place: Place) -> DataStream:
        return place(stream.map(self))

    def model(self, records: Records) -> Records:
        return [self(_copy(value)) for value in records]


class Recycle(Stage):
    """Emits one object again and again, changed in between."""

    def __init__(self, times: int) -> None:
        self.times = times

    def __call__(self, value: Any) -> Iterator[list[int]]:
        record = [number(value)]
        for i in range(self.times):
            record.append(i)
            yield record
        record.clear()

    def attach(self, stream: DataStream, place: Place) -> DataStream:
        return place(stream.flat_map(self))

    def model(self, records: Records) -> Records:
        return [[number(value), *range(i + 1)] for value in records for i in range(self.times)]


class UserError(Exception):
    """What a user's function raises."""


class FailOnce(Stage):
    """Fails at one record, the first time it comes by in a run."""

    def __init__(self, run: object, at: int) -> None:
        self.run = run
        self.at = at

    def __call__(self, value: Any) -> Any:
        if number(value) == self.at and (self.run, self.at) not in _failed:
            _failed.add((self.run, self.at))
            raise UserError(f"record {value!r}")
        return value

    def attach(self, stream: DataStream, place: Place) -> DataStream:
        return place(stream.map(self))

    def model(self, records: Records) -> Records:
        return list(records)


_failed: set[tuple[object, int]] = set()


def begin_run(run: object) -> None:
    """Every function of `run` that fails once may fail again."""
    _failed.difference_update([entry for entry in _failed if entry[0] == run])


# --- by key -----------------------------------------------------------------------------------


class Counts(AggregateFunction):
    """How many, and the largest."""

    def create_accumulator(self) -> list[int]:
        return [0, -1]

    def add(self, value: int, accumulator: list[int]) -> list[int]:
        # In place, as users do.
        accumulator[0] += 1
        accumulator[1] = max(accumulator[1], value)
        return accumulator

    def get_result(self, accumulator: list[int]) -> tuple[int, int]:
        return accumulator[0], accumulator[1]

    def merge(self, acc_a: list[int], acc_b: list[int]) -> list[int]:
        return [acc_a[0] + acc_b[0], max(acc_a[1], acc_b[1])]


def _add(left: int, right: int) -> int:
    return left + right


class Tally:
    """Numbers gathered per key, in state of a given kind, so that every kind can be asked."""

    KINDS = ("value", "boxed", "list", "map", "reducing", "aggregating")

    def __init__(self, kind: str, context: RuntimeContext) -> None:
        self._kind = kind
        if kind in ("value", "boxed"):
            self._value = context.get_state(ValueStateDescriptor("tally", ANY))
        elif kind == "list":
            self._list = context.get_list_state(ListStateDescriptor("tally", Types.LONG()))
        elif kind == "map":
            descriptor = MapStateDescriptor("tally", Types.LONG(), Types.LONG())
            self._map = context.get_map_state(descriptor)
        elif kind == "reducing":
            reducing = ReducingStateDescriptor("tally", _add, Types.LONG())
            self._reducing = context.get_reducing_state(reducing)
        else:
            aggregating = AggregatingStateDescriptor("tally", Counts(), ANY)
            self._aggregating = context.get_aggregating_state(aggregating)

    def add(self, n: int) -> int:
        """Take one more in; how many there are."""
        if self._kind == "value":
            count = (self._value.value() or 0) + 1
            self._value.update(count)
            return int(count)
        if self._kind == "boxed":
            box = self._value.value()
            if box is None:
                box = [0]
                self._value.update(box)
            box[0] += 1  # in place, without an update
            return int(box[0])
        if self._kind == "list":
            self._list.add(n)
            return len(list(self._list.get() or ()))
        if self._kind == "map":
            self._map.put(n % 3, (self._map.get(n % 3) or 0) + 1)
            return int(sum(self._map.values()))
        if self._kind == "reducing":
            self._reducing.add(1)
            return int(self._reducing.get() or 0)
        self._aggregating.add(n)
        result = self._aggregating.get()
        assert result is not None
        return int(result[0])

    def result(self) -> Any:
        """What the numbers amount to; `expected` says what that is."""
        if self._kind == "value":
            return self._value.value()
        if self._kind == "boxed":
            boxed: Any = self._value.value()
            return boxed[0]
        if self._kind == "list":
            return tuple(sorted(self._list.get() or ()))
        if self._kind == "map":
            return tuple(sorted(self._map.items()))
        if self._kind == "reducing":
            return self._reducing.get()
        return self._aggregating.get()

    def clear(self) -> None:
        if self._kind in ("value", "boxed"):
            self._value.clear()
        elif self._kind == "list":
            self._list.clear()
        elif self._kind == "map":
            for key in list(self._map.keys()):
                self._map.remove(key)
        elif self._kind == "reducing":
            self._reducing.clear()
        else:
            self._aggregating.clear()

    @staticmethod
    def expected(kind: str, numbers: list[int]) -> Any:
        if kind == "list":
            return tuple(sorted(numbers))
        if kind == "map":
            return tuple(sorted(Counter(n % 3 for n in numbers).items()))
        if kind == "aggregating":
            return len(numbers), max(numbers)
        return len(numbers)


class KeyedStage(Stage, KeyedProcessFunction):
    """A stage that is a keyed function."""

    def __init__(self, key: Key) -> None:
        self.key = key

    def attach(self, stream: DataStream, place: Place) -> DataStream:
        return place(stream.key_by(self.key).process(self))

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
        counts: Counter[str] = Counter()
        results = []
        for value in records:
            name = label(self.key(value))
            counts[name] += 1
            results.append((name, (counts[name] - 1) % (self.cycle or len(records)) + 1))
        return results


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
        counts: Counter[str] = Counter()
        results = []
        for value in records:
            name = label(self.key(value))
            counts[name] += 1
            results.append((name, counts[name], number(value)))
        return results


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
        counts: Counter[str] = Counter()
        results = []
        for value in records:
            name = label(self.key(value))
            counts[name] += 1
            results.append([name, counts[name]])
        return results


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
        return place(place(stream.map(self._one)).key_by(_first).reduce(self._sum))

    def model(self, records: Records) -> Records:
        return CountUp(self.key, "value", None).model(records)


# --- by key, with results that must be added up before they mean anything ---------------------


class Partial(KeyedStage):
    """(key, sum) of what came within some processing time; the sums of a key add up."""

    def __init__(self, key: Key, interval_ms: int) -> None:
        super().__init__(key)
        self.interval_ms = interval_ms

    def open(self, runtime_context: RuntimeContext) -> None:
        descriptor = ReducingStateDescriptor("sum", _add, Types.LONG())
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
        reduced = place(place(stream.map(self._weigh)).key_by(_first).reduce(self._sum))
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
        return place(stream.key_by(_first).process(_Settler(self.largest)))

    def model(self, records: Records) -> Records:
        return list(records)


class _Settler(KeyedProcessFunction):
    def __init__(self, largest: bool) -> None:
        self._combine: Callable[[int, int], int] = max if largest else _add

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


def _first(value: Any) -> Any:
    return value[0]


def _copy(value: Any) -> Any:
    return [_copy(part) for part in value] if isinstance(value, list) else value
