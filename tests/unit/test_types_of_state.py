"""State holds what was declared: the first value that does not fit is an error that names it."""

from __future__ import annotations

import datetime
import decimal

import pytest

from penstock.common import Row, Time, Types
from penstock.datastream import AggregateFunction, KeyedProcessFunction
from penstock.datastream.functions import BroadcastProcessFunction
from penstock.datastream.state import (
    AggregatingStateDescriptor,
    ListStateDescriptor,
    MapStateDescriptor,
    ReducingStateDescriptor,
    StateTtlConfig,
    ValueStateDescriptor,
)
from penstock.errors import JobFailedError, TypeMismatchError
from penstock.state.hashmap import HashMapBackend
from penstock.state.kinds import KeyContext
from penstock.testing import local_environment

PAIR = Types.TUPLE([Types.STRING(), Types.LONG()])
ROW = Types.ROW_NAMED(["name", "born"], [Types.STRING(), Types.INT()])
HOUR = StateTtlConfig.new_builder(Time.hours(1)).build()


@pytest.fixture(params=["for ever", "for an hour"])
def state_of(request):
    """Gives the state of a descriptor, with a key, with and without a time to live."""

    def bound(descriptor):
        keys = KeyContext()
        keys.key = "a key"
        if request.param == "for an hour":
            descriptor.enable_time_to_live(HOUR)
        return HashMapBackend(keys, 128).get_state(descriptor)

    return bound


class Total(AggregateFunction):
    """A sum that is text from 10 on."""

    def create_accumulator(self):
        return 0

    def add(self, value, accumulator):
        total = accumulator + value
        return total if total < 10 else str(total)

    def get_result(self, accumulator):
        return accumulator

    def merge(self, acc_a, acc_b):
        return acc_a + acc_b


FITS = [
    (Types.INT(), [0, -5, 2**40, True, None]),
    (Types.STRING(), ["", "text"]),
    (Types.BOOLEAN(), [True, False, 1]),
    (Types.DOUBLE(), [1.5, 3, float("nan")]),
    (Types.FLOAT(), [0.1]),
    (Types.BIG_DEC(), [decimal.Decimal("1.5"), 2]),
    (Types.SQL_TIMESTAMP(), [datetime.datetime(2026, 1, 2, 3, 4, 5, 678901)]),
    (PAIR, [("a", 1), ("a", True), ["a", 1]]),
    (ROW, [Row(name="Ada", born=1815), Row("Ada", None), ("Ada", 1815)]),
    (Types.LIST(Types.LONG()), [[], [1, 2], (1, 2)]),
    (Types.MAP(Types.STRING(), PAIR), [{}, {"a": ("b", 1)}]),
    (Types.PICKLED_BYTE_ARRAY(), [1, "text", frozenset({1})]),
]
MISFITS = [
    (Types.INT(), "text", "expected INT, got str: 'text'"),
    (Types.INT(), 1.5, "expected INT, got float: 1.5"),
    (Types.STRING(), b"x", "expected STRING, got bytes"),
    (Types.STRING(), 5, "expected STRING, got int"),
    (Types.BOOLEAN(), 3, "expected BOOLEAN, got int"),
    (Types.DOUBLE(), "1.5", "expected DOUBLE, got str"),
    (PAIR, ("a", "b"), "expected LONG, got str: 'b'"),
    (PAIR, ("a", 1, 2), "with 2 fields, got tuple with 3"),
    (PAIR, "ab", "got str"),
    (ROW, Row("Ada", "long ago"), "expected INT, got str"),
    (Types.LIST(Types.LONG()), 5, "got int"),
    (Types.MAP(Types.STRING(), PAIR), [1], "got list"),
]


@pytest.mark.parametrize(("declared", "values"), FITS, ids=str)
def test_what_fits_is_kept_as_it_is(state_of, declared, values) -> None:
    state = state_of(ValueStateDescriptor("v", declared))
    for value in values:
        state.update(value)
        assert state.value() is value
    in_list = state_of(ListStateDescriptor("l", declared))
    in_list.update(values)
    in_list.add_all(values)
    in_list.add(values[0])
    assert len(list(in_list.get())) == 2 * len(values) + 1


@pytest.mark.parametrize(("declared", "value", "message"), MISFITS, ids=str)
def test_what_does_not_fit_is_an_error_that_names_the_state(
    state_of, declared, value, message
) -> None:
    def refused(call, *arguments):
        with pytest.raises(TypeMismatchError) as caught:
            call(*arguments)
        assert "state 'the name'" in str(caught.value)
        assert message in str(caught.value)

    refused(state_of(ValueStateDescriptor("the name", declared)).update, value)
    in_list = state_of(ListStateDescriptor("the name", declared))
    refused(in_list.add, value)
    refused(in_list.add_all, [value])
    refused(in_list.update, [value])
    by_key = state_of(MapStateDescriptor("the name", Types.STRING(), declared))
    refused(by_key.put, "a", value)
    refused(by_key.put_all, {"a": value})
    reducing = state_of(ReducingStateDescriptor("the name", lambda a, b: b, declared))
    refused(reducing.add, value)


def test_keys_of_maps_and_what_functions_of_state_give_must_fit_too(state_of) -> None:
    by_key = state_of(MapStateDescriptor("m", Types.STRING(), Types.LONG()))
    with pytest.raises(TypeMismatchError, match="state 'm': key: expected STRING, got int"):
        by_key.put(5, 5)
    reducing = state_of(ReducingStateDescriptor("r", lambda a, b: f"{a}{b}", Types.LONG()))
    reducing.add(1)
    with pytest.raises(TypeMismatchError, match="state 'r': expected LONG, got str"):
        reducing.add(2)
    total = state_of(AggregatingStateDescriptor("t", Total(), Types.LONG()))
    total.add(9)
    with pytest.raises(TypeMismatchError, match="state 't': expected LONG, got str"):
        total.add(1)


class Remembers(KeyedProcessFunction):
    def open(self, runtime_context) -> None:
        self.last = runtime_context.get_state(ValueStateDescriptor("last", Types.INT()))

    def process_element(self, value, ctx):
        self.last.update(value)
        yield self.last.value()


def test_the_job_fails_with_state_operator_record_and_line() -> None:
    with local_environment() as env:
        stream = env.from_collection([1, 2, "text"]).key_by(str)
        with pytest.raises(JobFailedError) as caught:
            list(stream.process(Remembers()).name("Remember").execute_and_collect())
    error = caught.value.__cause__
    assert error.code == "TYPE_MISMATCH"
    for part in ["state 'last': expected INT, got str: 'text'", "'Remember'", "test_types_of_st"]:
        assert part in str(error)
    assert "result" not in str(error)


RULES = MapStateDescriptor("rules", Types.STRING(), Types.LONG())


class Broadcasts(BroadcastProcessFunction):
    def process_element(self, value, ctx):
        return None

    def process_broadcast_element(self, value, ctx):
        ctx.get_broadcast_state(RULES).put("rule", value)


def test_broadcast_state_has_a_type_too() -> None:
    with local_environment() as env:
        rules = env.from_collection(["wrong"]).broadcast(RULES)
        applied = env.from_collection([1]).connect(rules).process(Broadcasts())
        with pytest.raises(JobFailedError) as caught:
            list(applied.execute_and_collect())
    assert "state 'rules': expected LONG, got str" in str(caught.value.__cause__)
