"""Keyed state of every kind: values, lists, maps, reductions, timers, a time to live."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from kept_programs.program import program
from penstock.common import Duration, Types
from penstock.common.typeinfo import TypeInformation
from penstock.datastream import AggregateFunction, DataStream, KeyedProcessFunction, RuntimeContext
from penstock.datastream.state import (
    AggregatingStateDescriptor,
    ListStateDescriptor,
    MapStateDescriptor,
    ReducingStateDescriptor,
    StateTtlConfig,
    ValueStateDescriptor,
)

END = (1 << 63) - 1
"""The last moment of event time: the input has ended."""


def by_seven(number: int) -> int:
    return number % 7


class Tens(KeyedProcessFunction):
    """Keeps what it saw in values, lists and maps, and tells all of it when event time ends."""

    def open(self, runtime_context: RuntimeContext) -> None:
        self.count = runtime_context.get_state(ValueStateDescriptor("count", Types.LONG()))
        any_type: TypeInformation = Types.PICKLED_BYTE_ARRAY()
        self.last = runtime_context.get_list_state(ListStateDescriptor("last", any_type))
        descriptor = MapStateDescriptor("by tens", Types.LONG(), Types.LONG())
        self.tens = runtime_context.get_map_state(descriptor)

    def process_element(self, value: int, ctx: KeyedProcessFunction.Context) -> None:
        self.count.update((self.count.value() or 0) + 1)
        self.last.update(sorted([*(self.last.get() or ()), value])[-3:])
        tens = value // 10 % 10
        self.tens.put(tens, (self.tens.get(tens) or 0) + 1)
        ctx.timer_service().register_event_time_timer(END)

    def on_timer(self, timestamp: int, ctx: KeyedProcessFunction.OnTimerContext) -> Iterator[Any]:
        tens = dict(sorted(self.tens.items()))
        yield ctx.get_current_key(), self.count.value(), list(self.last.get() or ()), tens


@program(lambda numbers: [each[:4] for each in remembered(numbers)], before=1000, after=1500)
def values_lists_and_maps(numbers: DataStream) -> DataStream:
    return numbers.key_by(by_seven).process(Tens()).uid("remember")


class Average(AggregateFunction):
    """A sum and a count on the way, their quotient in the end."""

    def create_accumulator(self) -> tuple[int, int]:
        return 0, 0

    def add(self, value: int, accumulator: tuple[int, int]) -> tuple[int, int]:
        return accumulator[0] + value, accumulator[1] + 1

    def get_result(self, accumulator: tuple[int, int]) -> float:
        return accumulator[0] / accumulator[1]

    def merge(self, acc_a: tuple[int, int], acc_b: tuple[int, int]) -> tuple[int, int]:
        return acc_a[0] + acc_b[0], acc_a[1] + acc_b[1]


def larger(one: int, other: int) -> int:
    return max(one, other)


class Remember(Tens):
    """The same, and reductions; with a time to live if it is told so."""

    def __init__(self, ttl: bool = False) -> None:
        self._ttl = ttl

    def open(self, runtime_context: RuntimeContext) -> None:
        long, pair = Types.LONG(), Types.TUPLE([Types.LONG(), Types.LONG()])
        count = ValueStateDescriptor("count", long)
        last = ListStateDescriptor("last", Types.PICKLED_BYTE_ARRAY())
        tens = MapStateDescriptor("by tens", long, long)
        largest = ReducingStateDescriptor("largest", larger, long)
        average = AggregatingStateDescriptor("average", Average(), pair)
        if self._ttl:
            config = StateTtlConfig.new_builder(Duration.of_days(1)).build()
            for descriptor in (count, last, tens, largest, average):
                descriptor.enable_time_to_live(config)
        self.count = runtime_context.get_state(count)
        self.last = runtime_context.get_list_state(last)
        self.tens = runtime_context.get_map_state(tens)
        self.largest = runtime_context.get_reducing_state(largest)
        self.average = runtime_context.get_aggregating_state(average)

    def process_element(self, value: int, ctx: KeyedProcessFunction.Context) -> None:
        super().process_element(value, ctx)
        self.largest.add(value)
        self.average.add(value)

    def on_timer(self, timestamp: int, ctx: KeyedProcessFunction.OnTimerContext) -> Iterator[Any]:
        for told in super().on_timer(timestamp, ctx):
            yield (*told, self.largest.get(), self.average.get())


def remembered(numbers: range, keys: int = 7) -> Iterator[Any]:
    for key in range(keys):
        seen = [n for n in numbers if n % keys == key]
        tens = [n // 10 % 10 for n in seen]
        counts = {ten: tens.count(ten) for ten in sorted(set(tens))}
        yield key, len(seen), seen[-3:], counts, seen[-1], sum(seen) / len(seen)


@program(remembered)
def state_of_all_kinds(numbers: DataStream) -> DataStream:
    return numbers.key_by(by_seven).process(Remember()).uid("remember")


@program(remembered, settings={"state.backend.type": "rocksdb"})
def state_of_all_kinds_on_rocksdb(numbers: DataStream) -> DataStream:
    return state_of_all_kinds(numbers)


@program(remembered)
def time_to_live(numbers: DataStream) -> DataStream:
    return numbers.key_by(by_seven).process(Remember(ttl=True)).uid("remember")


@program(remembered, settings={"state.backend.type": "rocksdb"})
def time_to_live_on_rocksdb(numbers: DataStream) -> DataStream:
    return time_to_live(numbers)


@program(remembered, uids=False)
def generated_uids(numbers: DataStream) -> DataStream:
    even, odd = (numbers.filter(lambda n, p=parity: n % 2 == p) for parity in (0, 1))
    return even.union(odd).key_by(by_seven).process(Remember())


SPAN = 20_000
"""Of the clock: so long that all numbers come in it, so short that a test may wait for its end."""


class Alarms(KeyedProcessFunction):
    """Several timers per key in both domains; each tells how many records its key had by then."""

    def open(self, runtime_context: RuntimeContext) -> None:
        self.count = runtime_context.get_state(ValueStateDescriptor("count", Types.LONG()))

    def process_element(self, value: int, ctx: KeyedProcessFunction.Context) -> None:
        self.count.update((self.count.value() or 0) + 1)
        timers = ctx.timer_service()
        timers.register_event_time_timer(END - value)
        timers.register_event_time_timer(END)
        timers.delete_event_time_timer(END - 21)
        now = timers.current_processing_time()
        timers.register_processing_time_timer(now - now % SPAN + SPAN)

    def on_timer(self, timestamp: int, ctx: KeyedProcessFunction.OnTimerContext) -> Iterator[Any]:
        domain = ctx.time_domain().name
        event = domain == "EVENT_TIME"
        yield domain, ctx.get_current_key(), END - timestamp if event else timestamp % SPAN


def alarms(numbers: range) -> Iterator[Any]:
    for key in range(7):
        yield "PROCESSING_TIME", key, 0
        for number in {0, *(n for n in numbers if n % 7 == key)} - ({21} if key == 0 else set()):
            yield "EVENT_TIME", key, number


@program(alarms, waits_for=7)
def timers(numbers: DataStream) -> DataStream:
    return numbers.key_by(by_seven).process(Alarms()).uid("alarms")


def sums(numbers: range) -> Iterator[Any]:
    totals: dict[int, int] = {}
    for number in numbers:
        key = number % 4
        totals[key] = totals.get(key, 0) + number
        yield key, totals[key]


@program(sums)
def running_reduction(numbers: DataStream) -> DataStream:
    pairs = numbers.map(lambda n: (n % 4, n)).uid("pairs")
    summed = pairs.key_by(lambda pair: pair[0]).reduce(lambda a, b: (a[0], a[1] + b[1]))
    return summed.uid("sums")
