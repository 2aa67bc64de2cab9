"""Programs whose results were compared with real PyFlink's."""

from __future__ import annotations

import numpy as np
import pytest

from penstock.common import Configuration, Duration, Time, Types, WatermarkStrategy
from penstock.common.watermark_strategy import TimestampAssigner, WatermarkGenerator
from penstock.datastream import (
    AggregateFunction,
    CoMapFunction,
    CoProcessFunction,
    KeyedCoProcessFunction,
    KeyedProcessFunction,
    KeySelector,
    MapFunction,
    ProcessFunction,
    ProcessWindowFunction,
    ReduceFunction,
)
from penstock.datastream.functions import ProcessAllWindowFunction
from penstock.datastream.state import ValueStateDescriptor
from penstock.datastream.window import (
    CountEvictor,
    CountWindow,
    EventTimeSessionWindows,
    GlobalWindow,
    SlidingEventTimeWindows,
    SlidingProcessingTimeWindows,
    TimeWindow,
    TumblingEventTimeWindows,
)
from penstock.errors import InvalidParallelismError, JobFailedError, ProgramError
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
LOOSE = WatermarkStrategy.for_bounded_out_of_orderness(Duration.of_millis(9))
LOOSE = LOOSE.with_timestamp_assigner(At())
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


class Tells(MapFunction):
    """What the function may know of where it runs."""

    def open(self, runtime_context) -> None:
        most = runtime_context.get_max_number_of_parallel_subtasks()
        self.told = runtime_context.get_attempt_number(), most

    def map(self, value):
        return self.told


class FailsOnce(MapFunction):
    def open(self, runtime_context) -> None:
        self.attempt = runtime_context.get_attempt_number()

    def map(self, value):
        if self.attempt == 0:
            raise ValueError("in the first attempt")
        return self.attempt


def test_attempts_are_counted_from_0() -> None:
    configuration = Configuration()
    configuration.set_string("restart-strategy.type", "fixed-delay")
    configuration.set_string("restart-strategy.fixed-delay.attempts", "3")
    with local_environment(configuration=configuration) as env:
        assert list(env.from_collection([0]).map(FailsOnce()).execute_and_collect()) == [1]


def test_the_most_subtasks_are_the_max_parallelism_of_the_operator() -> None:
    with local_environment() as env:
        env.set_max_parallelism(16)
        stream = env.from_collection([0])
        assert list(stream.map(Tells()).execute_and_collect()) == [(0, 16)]
        own = stream.map(Tells()).set_max_parallelism(7)
        assert list(own.execute_and_collect()) == [(0, 7)]


def test_windows_print_as_in_pyflink() -> None:
    windows = [GlobalWindow(), TimeWindow(1, 2), CountWindow(3)]
    shown = ["GlobalWindow", "TimeWindow(start=1, end=2)", "CountWindow(id=3)"]
    assert list(map(repr, windows)) == shown


class WithTime(ProcessFunction):
    def process_element(self, value, ctx):
        yield value[1], ctx.timestamp()


class Spans(ProcessWindowFunction):
    def process(self, key, context, elements):
        yield context.window().start, context.window().end, [value[1] for value in elements]

    def clear(self, context) -> None:
        pass


def test_times_before_1970_and_floats_are_taken() -> None:
    records = [("a", -5), ("a", 1.9), ("a", -1.9), ("a", 7), ("a", np.int64(8))]
    with local_environment() as env:
        stream = env.from_collection(records).assign_timestamps_and_watermarks(LOOSE)
        times = list(stream.process(WithTime()).execute_and_collect())
        assert times == [(-5, -5), (1.9, 1), (-1.9, -1), (7, 7), (8, 8)]
        assert {type(time) for _, time in times} == {int}
        windows = stream.key_by(key_of).window(TumblingEventTimeWindows.of(Time.milliseconds(4)))
        assert list(windows.process(Spans()).execute_and_collect()) == [
            (-8, -4, [-5]),
            (-4, 0, [-1.9]),
            (0, 4, [1.9]),
            (4, 8, [7]),
            (8, 12, [8]),
        ]


class Behind(WatermarkGenerator):
    """Watermarks as bounded out-of-orderness gives them, written by hand."""

    def __init__(self) -> None:
        self.latest = -(2**63) + 10

    def on_event(self, event, event_timestamp, output) -> None:
        self.latest = max(self.latest, event_timestamp)
        output.emit_watermark(self.latest - 5 - 1)

    def on_periodic_emit(self, output) -> None:
        output.emit_watermark(self.latest - 5 - 1)


class Watermarks(ProcessFunction):
    def process_element(self, value, ctx):
        yield ctx.timer_service().current_watermark()


def test_a_generators_watermark_may_be_below_zero() -> None:
    strategy = WatermarkStrategy.for_generator(Behind).with_timestamp_assigner(At())
    with local_environment() as env:
        stream = env.from_collection([("a", n) for n in range(3)])
        stamped = stream.assign_timestamps_and_watermarks(strategy)
        seen = list(stamped.process(Watermarks()).execute_and_collect())
    assert seen[-1] == -5


def test_a_slide_may_be_larger_than_the_size() -> None:
    records = [("a", n) for n in range(20)]
    found = [[0, 1, 2], [5, 6, 7], [10, 11, 12], [15, 16, 17]]
    with local_environment() as env:
        stream = env.from_collection(records)
        stamped = stream.assign_timestamps_and_watermarks(IN_ORDER).key_by(key_of)
        sliding = SlidingEventTimeWindows.of(Time.milliseconds(3), Time.milliseconds(5))
        spans = list(stamped.window(sliding).process(Spans()).execute_and_collect())
        assert spans == [(part[0], part[0] + 3, part) for part in found]
        sums = list(stamped.window(sliding).sum(1).execute_and_collect())
        assert sums == [("a", sum(part)) for part in found]
        counted = list(stream.key_by(key_of).count_window(3, 5).sum(1).execute_and_collect())
        assert counted == [("a", sum(part)) for part in found]
        SlidingProcessingTimeWindows.of(Time.milliseconds(3), Time.milliseconds(5))


class Lists(ProcessAllWindowFunction):
    def process(self, context, elements):
        yield list(elements)

    def clear(self, context) -> None:
        pass


@pytest.mark.parametrize("parallelism", [1, 2])
def test_what_window_all_gives_takes_a_parallelism(parallelism) -> None:
    with local_environment() as env:
        windows = env.from_collection(range(4)).count_window_all(2)
        found = windows.process(Lists()).set_parallelism(parallelism)
        assert list(found.execute_and_collect()) == [[0, 1], [2, 3]]
        forced = env.from_collection(range(4)).map(lambda n: n).force_non_parallel()
        with pytest.raises(InvalidParallelismError):
            forced.set_parallelism(2).execute_and_collect()


def test_a_str_from_flat_map_is_refused() -> None:
    with local_environment() as env:
        spelled = env.from_collection([1]).flat_map(lambda value: "abc")
        with pytest.raises(JobFailedError) as caught:
            list(spelled.execute_and_collect())
    assert "wrap it in a list" in str(caught.value.__cause__)


def test_a_union_of_different_declared_types_is_refused() -> None:
    with local_environment() as env:
        numbers = env.from_collection([1], Types.INT())
        words = env.from_collection(["a"], Types.STRING())
        with pytest.raises(ProgramError, match=r"union\(\) of streams of INT and of STRING"):
            numbers.union(words)
        undeclared = env.from_collection(["a"])
        assert sorted(map(str, numbers.union(undeclared, numbers).execute_and_collect())) == [
            "1",
            "1",
            "a",
        ]


class Keys(KeyedProcessFunction):
    def process_element(self, value, ctx):
        yield ctx.get_current_key()


class First(KeySelector):
    """Counts in `open` what it adds to the key."""

    def open(self, runtime_context) -> None:
        self.added = 1

    def get_key(self, value):
        return value[0] + self.added


def test_keys_have_the_declared_type() -> None:
    with local_environment() as env:
        env.set_parallelism(2)
        stream = env.from_collection([(1, "x"), (2, "y")])
        keys = sorted(stream.key_by(key_of, Types.DOUBLE()).process(Keys()).execute_and_collect())
        assert keys == [1.0, 2.0] and {type(key) for key in keys} == {float}
        opened = stream.key_by(First(), Types.LONG()).process(Keys())
        assert sorted(opened.execute_and_collect()) == [2, 3]


CONSUMERS = {
    "reduce": lambda keyed: keyed.reduce(lambda a, b: a),
    "process": lambda keyed: keyed.process(Keys()),
    "window": lambda keyed: keyed.window(KINDS["tumbling"]).reduce(lambda a, b: a),
    "connect": lambda keyed: keyed.connect(keyed).process(Sides()),
    "map": lambda keyed: keyed.map(lambda value: value),
}


@pytest.mark.parametrize("consumer", CONSUMERS)
@pytest.mark.parametrize("parallelism", [1, 2])
def test_a_key_that_is_not_of_its_type_is_an_error_that_shows_it(consumer, parallelism) -> None:
    with local_environment() as env:
        env.set_parallelism(parallelism)
        stream = env.from_collection([("a", 1)]).assign_timestamps_and_watermarks(IN_ORDER)
        used = CONSUMERS[consumer](stream.key_by(key_of, Types.INT()))
        with pytest.raises(JobFailedError) as caught:
            list(used.execute_and_collect())
    error = caught.value.__cause__
    assert error.code == "TYPE_MISMATCH"
    assert "expected INT, got str: 'a'; the key is not of the type" in str(error)
    assert "record ('a', 1)" in str(error)


WIDTHS = [(Types.BYTE(), 8), (Types.SHORT(), 16), (Types.INT(), 32), (Types.LONG(), 64)]


@pytest.mark.parametrize(("declared", "bits"), WIDTHS, ids=str)
def test_a_whole_number_that_does_not_fit_is_an_error(declared, bits) -> None:
    most = (1 << (bits - 1)) - 1
    with local_environment() as env:
        for fits in (most, -most - 1):
            assert list(env.from_collection([fits], declared).execute_and_collect()) == [fits]
        for wrong in (most + 1, -most - 2):
            read = env.from_collection([wrong], declared)
            made = env.from_collection([wrong]).map(lambda n: n, declared)
            for stream in (read, made):
                with pytest.raises(JobFailedError) as caught:
                    list(stream.execute_and_collect())
                assert f"does not fit into {bits} bits" in str(caught.value.__cause__)
