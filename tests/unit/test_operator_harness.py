"""The operator harness: functions of every kind, fed by hand."""

from __future__ import annotations

from operator import itemgetter

import pytest

from penstock.common import IntCounter, Types
from penstock.datastream import (
    AggregateFunction,
    FilterFunction,
    FlatMapFunction,
    KeyedBroadcastProcessFunction,
    KeyedProcessFunction,
    MapFunction,
    OutputTag,
    ProcessFunction,
    ReduceFunction,
)
from penstock.datastream.state import (
    AggregatingStateDescriptor,
    ListStateDescriptor,
    MapStateDescriptor,
    ReducingStateDescriptor,
    ValueStateDescriptor,
)
from penstock.errors import ProgramError, UserFunctionError
from penstock.testing import OperatorHarness

ANY = Types.PICKLED_BYTE_ARRAY()


class Double(MapFunction):
    def map(self, value):
        return value * 2


class Twice(FlatMapFunction):
    def flat_map(self, value):
        yield value
        yield value


class Odd(FilterFunction):
    def filter(self, value):
        return value % 2 == 1


class Add(ReduceFunction):
    def reduce(self, value1, value2):
        return value1[0], value1[1] + value2[1]


@pytest.mark.parametrize("parallelism", [1, 3])
@pytest.mark.parametrize(
    ("build", "given", "expected"),
    [
        (lambda s: s.map(Double()), [1, 2], [2, 4]),
        (lambda s: s.map(lambda v: -v), [1, 2], [-1, -2]),
        (lambda s: s.flat_map(Twice()), [1, 2], [1, 1, 2, 2]),
        (lambda s: s.filter(Odd()), [1, 2, 3], [1, 3]),
        (lambda s: s.map(Double()).filter(Odd()), [1, 2], []),
        (
            lambda s: s.key_by(itemgetter(0)).reduce(Add()),
            [("a", 1), ("b", 5), ("a", 2)],
            [("a", 1), ("b", 5), ("a", 3)],
        ),
        (lambda s: s.map(Double()).union(s.filter(Odd())), [3], [6, 3]),
    ],
)
def test_functions_of_every_kind(build, given, expected, parallelism) -> None:
    with OperatorHarness(build, parallelism) as harness:
        harness.process(*given)
        assert sorted(harness.output) == sorted(expected)
        if len(given) > 1:
            assert harness.output == expected, "one record is done before the next one comes"


class Sum(AggregateFunction):
    def create_accumulator(self):
        return [0]

    def add(self, value, accumulator):
        accumulator[0] += value
        return accumulator

    def get_result(self, accumulator):
        return accumulator[0]

    def merge(self, acc_a, acc_b):
        return [acc_a[0] + acc_b[0]]


class Remember(KeyedProcessFunction):
    """Holds state of every kind, and sets timers of both kinds."""

    def open(self, runtime_context) -> None:
        self.value = runtime_context.get_state(ValueStateDescriptor("value", ANY))
        self.list = runtime_context.get_list_state(ListStateDescriptor("list", ANY))
        self.map = runtime_context.get_map_state(MapStateDescriptor("map", ANY, ANY))
        self.reducing = runtime_context.get_reducing_state(
            ReducingStateDescriptor("reducing", max, ANY)
        )
        self.aggregating = runtime_context.get_aggregating_state(
            AggregatingStateDescriptor("aggregating", Sum(), ANY)
        )
        self.seen = runtime_context.get_metrics_group().counter("seen")
        self.total = IntCounter()
        runtime_context.add_accumulator("total", self.total)

    def process_element(self, value, ctx):
        key, number = value
        self.seen.inc()
        self.total.add(number)
        self.value.update(number)
        self.list.add(number)
        self.map.put(number, key)
        self.reducing.add(number)
        self.aggregating.add(number)
        timers = ctx.timer_service()
        timers.register_processing_time_timer(timers.current_processing_time() + number)
        timers.register_event_time_timer(number)

    def on_timer(self, timestamp, ctx):
        now = ctx.timer_service().current_processing_time()
        yield ctx.time_domain().value, ctx.get_current_key(), timestamp, now


def remember(stream):
    return stream.key_by(itemgetter(0)).process(Remember())


def test_state_of_every_kind_can_be_read() -> None:
    with OperatorHarness(remember, parallelism=2) as harness:
        harness.process(("a", 5), ("a", 3), ("b", 1))
        assert harness.state("value", "a") == 3
        assert harness.state("list", "a") == [5, 3]
        assert harness.state("map", "a") == {5: "a", 3: "a"}
        assert harness.state("reducing", "a") == 5
        assert harness.state("aggregating", "a") == 8
        assert harness.state("value", "b") == 1
        assert harness.state("value", "c") is None and harness.state("list", "c") == []
        with pytest.raises(ProgramError, match="no state 'other'; there are: \\['aggregating'"):
            harness.state("other", "a")


def test_a_state_that_two_operators_have_is_not_guessed() -> None:
    def build(stream):
        return remember(remember(stream))

    with OperatorHarness(build) as harness, pytest.raises(ProgramError, match="several operators"):
        harness.state("value", "a")


def test_processing_time_passes_from_timer_to_timer() -> None:
    with OperatorHarness(remember, processing_time=1000) as harness:
        harness.process(("a", 20), ("b", 10), ("a", 30))
        harness.advance_processing_time(5)
        assert harness.output == [] and harness.processing_time() == 1005
        harness.advance_processing_time(20)
        assert harness.output == [
            ("processing", "b", 1010, 1010),
            ("processing", "a", 1020, 1020),
        ]


def test_event_time_passes_with_watermarks() -> None:
    with OperatorHarness(remember, parallelism=2) as harness:
        harness.process(("a", 20), ("b", 10), ("a", 30))
        harness.advance_watermark(20)
        assert sorted(harness.output) == [("event", "a", 20, 0), ("event", "b", 10, 0)]
        with pytest.raises(ProgramError, match="at 20 and cannot go back to 19"):
            harness.advance_watermark(19)
        harness.end_input()
        assert harness.output[2:] == [("event", "a", 30, 0)]
        with pytest.raises(ProgramError, match="input has ended"):
            harness.process(("a", 1))


def test_metrics_and_accumulators_can_be_read() -> None:
    with OperatorHarness(remember, parallelism=2) as harness:
        harness.process(("a", 5), ("b", 3), ("c", 1), ("d", 1))
        assert sum(m.value for m in harness.metrics() if m.name == "seen") == 4
        assert harness.accumulators() == {"total": 10}


@pytest.mark.parametrize("parallelism", [1, 2, 5])
def test_state_and_timers_are_restored_at_any_parallelism(parallelism: int) -> None:
    keys = "abcdefgh"
    with OperatorHarness(remember, parallelism=2) as harness:
        harness.process(*((key, 10) for key in keys))
        harness.snapshot()
        harness.process(*((key, 20) for key in keys))
        snapshot = harness.snapshot()
        harness.process(*((key, 30) for key in keys))
        harness.restore(snapshot, parallelism)
        assert harness.parallelism == parallelism
        assert all(harness.state("list", key) == [10, 20] for key in keys)
        harness.process(("a", 15))
        assert harness.state("list", "a") == [10, 20, 15]
        harness.advance_watermark(20)
        assert sorted(harness.output) == sorted(
            [("event", key, t, 0) for key in keys for t in (10, 20)] + [("event", "a", 15, 0)]
        )
        again = harness.snapshot()
    with OperatorHarness(remember) as other:
        other.restore(again)
        assert other.state("list", "a") == [10, 20, 15]


def test_operators_behind_others_are_restored_at_another_parallelism() -> None:
    with OperatorHarness(lambda s: remember(s.map(lambda v: v))) as harness:
        harness.process(("a", 10))
        harness.restore(harness.snapshot(), 3)
        assert harness.state("list", "a") == [10]


def test_timers_that_came_due_meanwhile_fire_after_a_restore() -> None:
    with OperatorHarness(remember) as harness:
        harness.process(("a", 10))
        snapshot = harness.snapshot()
        harness.advance_processing_time(50)
        harness.output.clear()
        harness.restore(snapshot)
        assert harness.output == [("processing", "a", 10, 50)]


def test_state_that_fits_no_operator_is_refused() -> None:
    with OperatorHarness(remember) as harness:
        harness.process(("a", 1))
        snapshot = harness.snapshot()
    with OperatorHarness(lambda s: s.map(Double())) as harness, pytest.raises(ProgramError) as info:
        harness.restore(snapshot)
    assert "has state of an operator" in str(info.value)


TAG = OutputTag("odd", Types.LONG())


class Split(ProcessFunction):
    def process_element(self, value, ctx):
        if value % 2:
            yield TAG, value
        else:
            yield value


def test_side_outputs_are_collected_apart() -> None:
    with OperatorHarness(lambda s: s.process(Split()), side_outputs=[TAG]) as harness:
        harness.process(1, 2, 3)
        assert harness.output == [2] and harness.side_output(TAG) == [1, 3]
        with pytest.raises(ProgramError, match=r"'other'.* is not collected"):
            harness.side_output(OutputTag("other"))


RULES = MapStateDescriptor("rules", Types.STRING(), Types.LONG())


class Limit(KeyedBroadcastProcessFunction):
    def process_element(self, value, ctx):
        limit = ctx.get_broadcast_state(RULES).get("limit")
        if limit is not None and value > limit:
            yield value

    def process_broadcast_element(self, value, ctx):
        ctx.get_broadcast_state(RULES).put("limit", value)


def limited(payments, rules):
    return payments.key_by(lambda v: v % 3).connect(rules.broadcast(RULES)).process(Limit())


@pytest.mark.parametrize("parallelism", [1, 3])
def test_two_inputs_and_broadcast_state(parallelism: int) -> None:
    with OperatorHarness(limited, parallelism=2, inputs=2) as harness:
        harness.process(100)
        harness.process(50, input=2)
        harness.restore(harness.snapshot(), parallelism)
        harness.process(40, 60)
        assert harness.output == [60]
        assert harness.broadcast_state("rules") == {"limit": 50}
    with OperatorHarness(remember) as harness, pytest.raises(ProgramError, match="no operator"):
        harness.broadcast_state("rules")


class Fragile(KeyedProcessFunction):
    def open(self, runtime_context) -> None:
        self.count = runtime_context.get_state(ValueStateDescriptor("count", Types.LONG()))

    def process_element(self, value, ctx):
        self.count.update((self.count.value() or 0) + 1)
        yield 10 // value

    def close(self) -> None:
        raise OSError("cannot close")


def test_a_failure_is_raised_and_can_be_recovered_from() -> None:
    harness = OperatorHarness(lambda s: s.key_by(lambda v: 0).process(Fragile()))
    harness.process(5)
    snapshot = harness.snapshot()
    with pytest.raises(UserFunctionError, match="ZeroDivisionError"):
        harness.process(0)
    with pytest.raises(ProgramError, match="a function has failed"):
        harness.process(5)
    harness.restore(snapshot)
    assert harness.state("count", 0) == 1
    harness.process(2)
    assert harness.output == [2, 5]
    with pytest.raises(OSError, match="cannot close"):
        harness.close()
    harness.close()
    with pytest.raises(ProgramError, match="closed"):
        harness.process(1)
    with pytest.raises(ProgramError, match="closed"):
        harness.restore(snapshot)


def test_an_error_of_the_test_is_not_hidden_by_one_of_close() -> None:
    with (
        pytest.raises(KeyError),
        OperatorHarness(lambda s: s.key_by(lambda v: 0).process(Fragile())),
    ):
        raise KeyError("the test's own")
