"""Values of every type in state: declared ones in columns, others pickled.

`Reading` and `Level` are in kept files by their names: neither they nor this module may be renamed.
"""

from __future__ import annotations

import datetime
import decimal
import enum
import uuid
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from kept_programs.program import program
from kept_programs.states import END
from penstock.common import Duration, Instant, Row, RowKind, Time, Types
from penstock.common.typeinfo import TypeInformation
from penstock.connectors.bad_records import BadRecord
from penstock.connectors.kafka.records import ConsumerRecord
from penstock.datastream import DataStream, KeyedProcessFunction, RuntimeContext
from penstock.datastream.state import ListStateDescriptor, MapStateDescriptor
from penstock.datastream.window import CountWindow, GlobalWindow, TimestampedValue, TimeWindow

DAY = datetime.date(2024, 2, 29)


class Level(enum.Enum):
    LOW = "low"
    HIGH = "high"


@dataclass(frozen=True)
class Reading:
    """A record of a class of the user's."""

    number: int
    level: Level


def moment(n: int) -> datetime.datetime:
    return datetime.datetime(2024, 2, 29, 12, n % 60, 7, 1234)


DECLARED: dict[str, tuple[TypeInformation, Any]] = {
    "string": (Types.STRING(), lambda n: f"n°{n}"),
    "boolean": (Types.BOOLEAN(), lambda n: n % 2 == 0),
    "long": (Types.LONG(), lambda n: -(n << 40)),
    "big int": (Types.BIG_INT(), lambda n: n << 70),
    "double": (Types.DOUBLE(), lambda n: n / 7),
    "decimal": (Types.BIG_DEC(), lambda n: decimal.Decimal(n) / 8),
    "bytes": (Types.PRIMITIVE_ARRAY(Types.BYTE()), lambda n: bytes([n, 255 - n])),
    "date": (Types.SQL_DATE(), lambda n: DAY + datetime.timedelta(days=n)),
    "time": (Types.SQL_TIME(), lambda n: moment(n).time()),
    "timestamp": (Types.SQL_TIMESTAMP(), moment),
    "instant": (Types.INSTANT(), lambda n: Instant(n, n + 1)),
    "list": (Types.LIST(Types.LONG()), lambda n: [n, None, n + 1]),
    "map": (Types.MAP(Types.STRING(), Types.LONG()), lambda n: {str(n): n}),
    "tuple": (Types.TUPLE([Types.LONG(), Types.STRING()]), lambda n: (n, str(n))),
    "row": (
        Types.ROW_NAMED(["n", "text"], [Types.LONG(), Types.STRING()]),
        lambda n: Row(n=n, text=str(n)),
    ),
}
"""How a number is kept by each declared type."""

PICKLED: dict[str, Any] = {
    "row": lambda n: Row(n=n, window=TimeWindow(n, n + 1)),
    "row without names": lambda n: Row(n, str(n)),
    "deleted row": lambda n: Row.of_kind(RowKind.DELETE, n),
    "row kind": lambda n: list(RowKind)[n % 4],
    "instant": lambda n: Instant(n, 5),
    "duration": lambda n: Duration(n),
    "time": lambda n: Time.seconds(n),
    "time window": lambda n: TimeWindow(n, n + 10),
    "count window": lambda n: CountWindow(n),
    "global window": lambda n: (n, GlobalWindow()),
    "timestamped": lambda n: TimestampedValue(n, 10 * n),
    "reading": lambda n: Reading(n, Level.HIGH if n % 2 else Level.LOW),
    "standard library": lambda n: (uuid.UUID(int=n), decimal.Decimal(n), moment(n), {n}),
    "nested": lambda n: {"list": [n, [Row(n)]], "none": None, "text": str(n)},
}
"""How a number is kept by types that nobody declares."""


class Keep(KeyedProcessFunction):
    """Keeps every number in the form of every type, and tells all of it when event time ends."""

    def open(self, runtime_context: RuntimeContext) -> None:
        self.declared = {
            name: runtime_context.get_list_state(ListStateDescriptor(f"declared {name}", kind))
            for name, (kind, _) in DECLARED.items()
        }
        kind: TypeInformation = Types.PICKLED_BYTE_ARRAY()
        self.pickled = {
            name: runtime_context.get_map_state(MapStateDescriptor(name, Types.LONG(), kind))
            for name in PICKLED
        }

    def process_element(self, value: int, ctx: KeyedProcessFunction.Context) -> None:
        for name, state in self.declared.items():
            state.add(DECLARED[name][1](value))
        for name, state in self.pickled.items():
            state.put(value, PICKLED[name](value))
        ctx.timer_service().register_event_time_timer(END)

    def on_timer(self, timestamp: int, ctx: KeyedProcessFunction.OnTimerContext) -> Iterator[Any]:
        key = ctx.get_current_key()
        for name, state in self.declared.items():
            yield key, name, list(state.get() or ())
        for name, state in self.pickled.items():
            yield key, name, sorted(state.items(), key=lambda entry: entry[0])


def kept(numbers: range) -> Iterator[Any]:
    for key in sorted({key_of(n) for n in numbers}, key=repr):
        seen = [n for n in numbers if key_of(n) == key]
        for name, (_, form) in DECLARED.items():
            yield key, name, [form(n) for n in seen]
        for name, form in PICKLED.items():
            yield key, name, [(n, form(n)) for n in seen]


def key_of(number: int) -> Any:
    """Keys of several types: even and odd numbers, which come in different splits, are apart."""
    keys = [0, "one", Row(kind="two"), (3, None)]
    return keys[number % 4]


@program(kept, before=12, after=20)
def types(numbers: DataStream) -> DataStream:
    return numbers.key_by(key_of).process(Keep()).uid("keep")


@program(kept, before=12, after=20, settings={"state.backend.type": "rocksdb"})
def types_on_rocksdb(numbers: DataStream) -> DataStream:
    return types(numbers)


# --- records as connectors give them ----------------------------------------------------------


def from_kafka(number: int) -> list[Any]:
    record = ConsumerRecord("topic", 0, number, 10 * number, b"key", b"{", (("header", None),))
    return [record, BadRecord("not JSON", record)]


class KeepRecords(KeyedProcessFunction):
    """Keeps whole messages, and those that cannot be decoded."""

    def open(self, runtime_context: RuntimeContext) -> None:
        kind: TypeInformation = Types.PICKLED_BYTE_ARRAY()
        self.records = runtime_context.get_list_state(ListStateDescriptor("records", kind))

    def process_element(self, value: int, ctx: KeyedProcessFunction.Context) -> None:
        self.records.add_all(from_kafka(value))
        ctx.timer_service().register_event_time_timer(END)

    def on_timer(self, timestamp: int, ctx: KeyedProcessFunction.OnTimerContext) -> Iterator[Any]:
        yield from self.records.get() or ()


@program(lambda numbers: [record for n in numbers for record in from_kafka(n)], before=6, after=9)
def records_of_connectors(numbers: DataStream) -> DataStream:
    return numbers.key_by(lambda n: n % 2).process(KeepRecords()).uid("keep")
