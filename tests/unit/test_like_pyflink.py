"""Programs whose results were compared with real PyFlink's."""

from __future__ import annotations

import pytest

from penstock.common import Configuration, Duration, Time, Types, WatermarkStrategy
from penstock.common.watermark_strategy import TimestampAssigner
from penstock.datastream import (
    AggregateFunction,
    CoMapFunction,
    CoProcessFunction,
    KeyedCoProcessFunction,
    ProcessWindowFunction,
    ReduceFunction,
)
from penstock.datastream.state import ValueStateDescriptor
from penstock.datastream.window import (
    CountEvictor,
    EventTimeSessionWindows,
    SlidingEventTimeWindows,
    TumblingEventTimeWindows,
)
from penstock.errors import ProgramError
from penstock.testing import local_environment

BACKENDS = ["hashmap", "rocksdb"]


def key_of(record):
    return record[0]


class CountingSum(ReduceFunction):
    """Sums, and counts in state of its own how often it was called for the key."""

    def open(self, runtime_context) -> None:
        self.calls = runtime_context.get_state(ValueStateDescriptor("calls", Types.LONG()))

    def reduce(self, value1, value2):
        calls = (self.calls.value() or 0) + 1
        self.calls.update(calls)
        return value1[0], value1[1] + value2[1], calls


class CountingAggregate(AggregateFunction):
    """The same as an aggregation."""

    def open(self, runtime_context) -> None:
        self.calls = runtime_context.get_state(ValueStateDescriptor("calls", Types.LONG()))

    def create_accumulator(self):
        return 0

    def add(self, value, accumulator):
        self.calls.update((self.calls.value() or 0) + 1)
        return accumulator + value[1]

    def get_result(self, accumulator):
        return accumulator, self.calls.value()

    def merge(self, acc_a, acc_b):
        return acc_a + acc_b


@pytest.mark.parametrize("backend", BACKENDS)
def test_a_reduce_function_has_state_of_its_key(backend) -> None:
    records = [("a", 1, 0), ("a", 2, 0), ("b", 5, 0), ("a", 3, 0), ("b", 6, 0)]
    configuration = Configuration()
    configuration.set_string("state.backend.type", backend)
    with local_environment(3, faults=True, configuration=configuration) as env:
        env.set_parallelism(2)
        reduced = env.from_collection(records).key_by(key_of).reduce(CountingSum())
        found = sorted(reduced.execute_and_collect())
    assert found == [("a", 1, 0), ("a", 3, 1), ("a", 6, 2), ("b", 5, 0), ("b", 11, 1)]


def test_functions_of_windows_have_state_of_their_key() -> None:
    records = [("a", 1, 0), ("a", 2, 0), ("b", 5, 0), ("b", 6, 0), ("a", 3, 0), ("a", 4, 0)]
    with local_environment() as env:
        windows = env.from_collection(records).key_by(key_of).count_window(2)
        reduced = sorted(windows.reduce(CountingSum()).execute_and_collect())
        aggregated = sorted(windows.aggregate(CountingAggregate()).execute_and_collect())
    assert reduced == [("a", 3, 1), ("a", 7, 2), ("b", 11, 1)]
    assert aggregated == [(3, 2), (7, 4), (11, 2)]


class Sides(KeyedCoProcessFunction):
    def process_element1(self, value, ctx):
        yield 1, ctx.get_current_key(), value

    def process_element2(self, value, ctx):
        yield 2, ctx.get_current_key(), value


class UnkeyedSides(CoProcessFunction):
    def process_element1(self, value, ctx):
        yield 1, value

    def process_element2(self, value, ctx):
        yield 2, value


def test_a_keyed_stream_is_connected_and_keyed_again() -> None:
    with local_environment() as env:
        env.set_parallelism(2)
        one, other = env.from_collection([("x", 1)]), env.from_collection([(2, "x")])
        connected = one.key_by(lambda v: v[1]).connect(other).key_by(key_of, lambda v: v[1])
        found = sorted(connected.process(Sides()).execute_and_collect())
    assert found == [(1, "x", ("x", 1)), (2, "x", (2, "x"))]


def test_a_function_of_a_keyed_stream_and_one_that_is_not_is_refused() -> None:
    with local_environment() as env:
        one, other = env.from_collection([("x", 1)]), env.from_collection([("x", 2)])
        for connected in (one.key_by(key_of).connect(other), one.connect(other.key_by(key_of))):
            for function in (UnkeyedSides(), Sides()):
                with pytest.raises(ProgramError, match=r"connect\(\.\.\.\)\.key_by\(selector1"):
                    connected.process(function)


@pytest.mark.parametrize("parallelism", [1, 2, 3])
def test_a_collection_comes_back_in_its_order(parallelism) -> None:
    with local_environment(seed=parallelism) as env:
        env.set_parallelism(parallelism)
        numbers = env.from_collection(range(20))
        assert numbers.execute_and_collect(limit=3) == [0, 1, 2]
        assert list(numbers.execute_and_collect()) == list(range(20))


def test_each_subtask_is_collected_in_its_order() -> None:
    with local_environment() as env:
        env.set_parallelism(2)
        found = list(env.from_collection(range(40)).map(lambda n: n).execute_and_collect())
    # The collection goes to two subtasks in turns: between them there is no order.
    assert [n for n in found if n % 2 == 0] == list(range(0, 40, 2))
    assert [n for n in found if n % 2] == list(range(1, 40, 2))


class OnlyEven(CoMapFunction):
    def map1(self, value):
        return value if value % 2 == 0 else None

    def map2(self, value):
        return None


def test_a_co_map_function_that_returns_none_gives_no_record() -> None:
    with local_environment() as env:
        one, other = env.from_collection([1, 2]), env.from_collection([3])
        assert list(one.connect(other).map(OnlyEven()).execute_and_collect()) == [2]
        keyed = one.connect(other).key_by(str, str).map(OnlyEven(), Types.LONG())
        assert list(keyed.execute_and_collect()) == [2]


class At(TimestampAssigner):
    def extract_timestamp(self, value, record_timestamp):
        return value[1]


IN_ORDER = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(At())
KINDS = {
    "tumbling": TumblingEventTimeWindows.of(Time.milliseconds(10)),
    "sliding": SlidingEventTimeWindows.of(Time.milliseconds(10), Time.milliseconds(10)),
    "session": EventTimeSessionWindows.with_gap(Time.milliseconds(9)),
}


def windows_of(env, kind, records):
    stamped = env.from_collection(records).assign_timestamps_and_watermarks(IN_ORDER)
    return stamped.key_by(key_of).window(KINDS[kind])


def not_over_20(one, other):
    total = one[1] + other[1]
    return None if total > 20 else (one[0], total)


class Wraps(ProcessWindowFunction):
    def process(self, key, context, elements):
        yield key, list(elements)

    def clear(self, context) -> None:
        pass


class OddSum(AggregateFunction):
    def create_accumulator(self):
        return 0

    def add(self, value, accumulator):
        return accumulator + value[1]

    def get_result(self, accumulator):
        return accumulator if accumulator % 2 else None

    def merge(self, acc_a, acc_b):
        return acc_a + acc_b


@pytest.mark.parametrize("kind", ["tumbling", "sliding", "session"])
def test_a_window_whose_reduction_is_none_has_no_record(kind) -> None:
    # In the second window the third record would be reduced with None: it is not, as in PyFlink.
    records = [("a", 1), ("a", 2), ("a", 21), ("a", 22), ("a", 23), ("a", 40)]
    with local_environment() as env:
        windows = windows_of(env, kind, records)
        assert list(windows.reduce(not_over_20).execute_and_collect()) == [("a", 3), ("a", 40)]
        wrapped = windows.reduce(not_over_20, window_function=Wraps())
        assert list(wrapped.execute_and_collect()) == [("a", [("a", 3)]), ("a", [("a", 40)])]


@pytest.mark.parametrize("kind", ["tumbling", "sliding", "session"])
def test_a_window_whose_aggregate_is_none_has_no_record(kind) -> None:
    records = [("a", 1), ("a", 2), ("a", 21), ("a", 23), ("a", 41)]
    with local_environment() as env:
        windows = windows_of(env, kind, records)
        assert list(windows.aggregate(OddSum()).execute_and_collect()) == [3, 41]
        wrapped = windows.aggregate(OddSum(), window_function=Wraps())
        assert list(wrapped.execute_and_collect()) == [("a", [3]), ("a", [41])]


def test_a_window_with_a_trigger_has_no_record_of_none_either() -> None:
    with local_environment() as env:
        counted = env.from_collection([("a", n) for n in (1, 2, 20, 21)]).key_by(key_of)
        reduced = counted.count_window(2).reduce(not_over_20)
        assert list(reduced.execute_and_collect()) == [("a", 3)]
        evicting = counted.count_window(2).evictor(CountEvictor.of(2))
        assert list(evicting.aggregate(OddSum()).execute_and_collect()) == [3, 41]


def test_sessions_merge_without_one_whose_reduction_is_none() -> None:
    # Two sessions, the first of them without a value, that a late record joins.
    records = [("a", 11), ("a", 12), ("a", 30), ("a", 20), ("b", 100)]
    strategy = WatermarkStrategy.for_bounded_out_of_orderness(Duration.of_millis(50))
    with local_environment() as env:
        stamped = env.from_collection(records).assign_timestamps_and_watermarks(
            strategy.with_timestamp_assigner(At())
        )
        windows = stamped.key_by(key_of).window(KINDS["session"])
        reduced = windows.reduce(lambda a, b: None if b[1] == 12 else (a[0], a[1] + b[1]))
        assert sorted(reduced.execute_and_collect()) == [("a", 30), ("b", 100)]
