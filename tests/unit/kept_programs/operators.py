"""State that is not keyed, two inputs, calls under way, output that waits for its commit."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from kept_programs.program import program
from kept_programs.states import END, by_seven
from penstock.common import Row, Time, Types
from penstock.connectors.sink import Sink
from penstock.datastream import (
    AsyncDataStream,
    AsyncFunction,
    BroadcastProcessFunction,
    CheckpointedFunction,
    DataStream,
    FlatMapFunction,
    KeyedBroadcastProcessFunction,
    KeyedCoProcessFunction,
    RuntimeContext,
    TimeWindow,
)
from penstock.datastream.connectors.file_system import FileSink
from penstock.datastream.state import ListStateDescriptor, MapStateDescriptor, ValueStateDescriptor
from penstock.datastream.window import TumblingEventTimeWindows
from penstock.testing.local_environment import LocalEnvironment

BEFORE = 50
"""How many numbers come before the snapshot of the programs that must know it."""

# --- operator state ---------------------------------------------------------------------------


class Held(FlatMapFunction, CheckpointedFunction):
    """Holds records back until it is restored; then it lets them go, and all that come.

    With each it tells the sum of what all subtasks held, which is union state.
    """

    def initialize_state(self, context: Any) -> None:
        store, pickled = context.get_operator_state_store(), Types.PICKLED_BYTE_ARRAY()
        self.held = store.get_list_state(ListStateDescriptor("held", Types.LONG()))
        self.rows = store.get_list_state(ListStateDescriptor("rows", pickled))
        self.sums = store.get_union_list_state(ListStateDescriptor("sums", pickled))
        self.names = store.get_broadcast_state(
            MapStateDescriptor("names", Types.STRING(), Types.LONG())
        )
        self.restored = context.is_restored()
        self.total = sum(row["sum"] for row in self.sums.get())

    def flat_map(self, value: int) -> Iterator[Any]:
        self.held.add(value)
        self.rows.add(Row(window=TimeWindow(value, value + 1)))
        if self.restored:
            rows = [row["window"].start for row in self.rows.get()]
            assert rows == list(self.held.get()), "two lists of one subtask are split alike"
            for number in rows:
                yield number, self.total, self.names.get("limit")
            self.held.clear()
            self.rows.clear()

    def snapshot_state(self, context: Any) -> None:
        self.names.put("limit", BEFORE)
        self.sums.update([Row(sum=sum(self.held.get()))])


@program(lambda numbers: [(n, sum(range(BEFORE)), BEFORE) for n in numbers], before=BEFORE)
def operator_state(numbers: DataStream) -> DataStream:
    return numbers.rebalance().flat_map(Held()).uid("held")


# --- broadcast state --------------------------------------------------------------------------

RULES = MapStateDescriptor("rules", Types.LONG(), Types.PICKLED_BYTE_ARRAY())
NAMES = MapStateDescriptor("names", Types.STRING(), Types.LONG())


class KeyedRules(KeyedBroadcastProcessFunction):
    """A count of its own per key; all rules are told when event time ends."""

    def open(self, runtime_context: RuntimeContext) -> None:
        self.count = runtime_context.get_state(ValueStateDescriptor("count", Types.LONG()))

    def process_element(self, value: int, ctx: Any) -> None:
        self.count.update((self.count.value() or 0) + 1)
        ctx.timer_service().register_event_time_timer(END)

    def process_broadcast_element(self, value: int, ctx: Any) -> None:
        ctx.get_broadcast_state(RULES).put(value, Row(n=value))
        ctx.get_broadcast_state(NAMES).put(str(value), value)

    def on_timer(self, timestamp: int, ctx: Any) -> Iterator[Any]:
        rules = sorted(row["n"] for row in ctx.get_broadcast_state(RULES).values())
        names = sorted(ctx.get_broadcast_state(NAMES).values())
        yield ctx.get_current_key(), self.count.value(), rules, names


def rules_of(numbers: range) -> Iterator[Any]:
    rules = [n for n in numbers if n % 10 == 0]
    for key in range(7):
        yield key, len([n for n in numbers if n % 7 == key]), rules, rules


@program(rules_of)
def broadcast_state_beside_keyed(numbers: DataStream) -> DataStream:
    rules = numbers.filter(lambda n: n % 10 == 0).uid("rules").broadcast(RULES, NAMES)
    return numbers.key_by(by_seven).connect(rules).process(KeyedRules()).uid("apply")


class Rules(BroadcastProcessFunction):
    """A record from behind the snapshot meets the rule of the number 60 less, from before it."""

    def process_element(self, value: int, ctx: Any) -> Iterator[Any]:
        if value >= 60:
            yield value, ctx.get_broadcast_state(RULES).get(value - 60)

    def process_broadcast_element(self, value: int, ctx: Any) -> None:
        ctx.get_broadcast_state(RULES).put(value, Row(n=value))


@program(lambda numbers: [(n, Row(n=n - 60)) for n in numbers if n >= 60], before=BEFORE)
def broadcast_state(numbers: DataStream) -> DataStream:
    rules = numbers.broadcast(RULES)
    return numbers.connect(rules).process(Rules()).uid("apply")


# --- two inputs -------------------------------------------------------------------------------


class Balance(KeyedCoProcessFunction):
    """One input adds, the other takes away; the balance is told when event time ends."""

    def open(self, runtime_context: RuntimeContext) -> None:
        self.balance = runtime_context.get_state(ValueStateDescriptor("balance", Types.LONG()))

    def process_element1(self, value: int, ctx: Any) -> None:
        self.balance.update((self.balance.value() or 0) + value)
        ctx.timer_service().register_event_time_timer(END)

    def process_element2(self, value: int, ctx: Any) -> None:
        self.balance.update((self.balance.value() or 0) - value // 2)
        ctx.timer_service().register_event_time_timer(END)

    def on_timer(self, timestamp: int, ctx: Any) -> Iterator[Any]:
        yield ctx.get_current_key(), self.balance.value()


def balances(numbers: range) -> Iterator[Any]:
    for key in range(7):
        yield key, sum(n - n // 2 for n in numbers if n % 7 == key)


@program(balances)
def two_inputs(numbers: DataStream) -> DataStream:
    streams = numbers.key_by(by_seven).connect(numbers.key_by(by_seven))
    return streams.process(Balance()).uid("balance")


@program(
    lambda numbers: [
        (one, other)
        for one in numbers
        for other in numbers
        if one % 7 == other % 7 and -50 <= 10 * (other - one) <= 150
    ]
)
def interval_join(numbers: DataStream) -> DataStream:
    joined = numbers.key_by(by_seven).interval_join(numbers.key_by(by_seven))
    bounds = joined.between(Time.milliseconds(-50), Time.milliseconds(150))
    return bounds.process(lambda one, other: (one, other)).uid("join")


@program(
    lambda numbers: [
        (one, other)
        for one in numbers
        for other in numbers
        if one % 7 == other % 7 and one // 20 == other // 20
    ]
)
def window_join(numbers: DataStream) -> DataStream:
    joined = numbers.join(numbers).where(by_seven).equal_to(by_seven)
    windowed = joined.window(TumblingEventTimeWindows.of(Time.milliseconds(200)))
    return windowed.apply(lambda one, other: (one, other)).uid("join")


# --- calls under way --------------------------------------------------------------------------


class Ask(AsyncFunction):
    async def async_invoke(self, value: Row) -> list[Any]:
        return [(value["question"], "answered")]


def calls_wait(snapshot: Path) -> bool:
    return any(b"question-" in path.read_bytes() for path in snapshot.glob("shared/*"))


@program(lambda numbers: [(f"question-{n}", "answered") for n in numbers], good=calls_wait)
def calls_under_way(numbers: DataStream) -> DataStream:
    questions = numbers.map(lambda n: Row(question=f"question-{n}")).uid("questions")
    return AsyncDataStream.unordered_wait(questions, Ask(), Time.seconds(100), 8).uid("ask")


# --- output that waits for its commit ---------------------------------------------------------


def as_line(value: int) -> bytes:
    return f"{value}\n".encode()


def files(env: LocalEnvironment) -> Sink:
    return FileSink.for_row_format(f"{env.storage}/out", as_line).build()


def lines(env: LocalEnvironment) -> list[str]:
    """What is visible: names that begin with a dot are of files that are not committed."""
    written = [path for path in env.filesystem.files if path.startswith("/out/")]
    visible = [path for path in written if "/." not in path]
    return [line for path in visible for line in env.filesystem.files[path].decode().splitlines()]


@program(lambda numbers: numbers, sink=files, results=lines)
def files_to_be_committed(numbers: DataStream) -> DataStream:
    return numbers
