"""Windows in programs: what is refused when it is built, and how they run in slots."""

from __future__ import annotations

import operator

import pytest

from penstock.common import Time, Types
from penstock.datastream import (
    DataStream,
    OutputTag,
    ProcessWindowFunction,
    StreamExecutionEnvironment,
)
from penstock.datastream.assembly import assemble
from penstock.datastream.functions import CoGroupFunction, FlatJoinFunction, JoinFunction
from penstock.datastream.window import (
    ContinuousEventTimeTrigger,
    ContinuousProcessingTimeTrigger,
    CountEvictor,
    CountTrigger,
    EventTimeSessionWindows,
    GlobalWindows,
    NeverTrigger,
    ProcessingTimeSessionWindows,
    PurgingTrigger,
    SlidingEventTimeWindows,
    SlidingProcessingTimeWindows,
    TimeWindow,
    TumblingEventTimeWindows,
    TumblingProcessingTimeWindows,
)
from penstock.errors import ConfigurationError, ProgramError
from penstock.testing import OperatorHarness


def itself(value):
    return value


@pytest.fixture
def stream() -> DataStream:
    return StreamExecutionEnvironment.get_execution_environment().from_collection([1])


# --- bad input ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: TumblingEventTimeWindows.of(Time.seconds(0)), "size must be more than 0"),
        (lambda: TumblingProcessingTimeWindows.of(Time.seconds(-1)), "size must be more than 0"),
        (lambda: TumblingEventTimeWindows.of("1 min"), "must be a Time"),
        (lambda: TumblingEventTimeWindows.of(1.5), "must be a Time"),
        (lambda: TumblingEventTimeWindows.of(10, 10), "offset of 10 ms must be less"),
        (lambda: TumblingEventTimeWindows.of(10, 0, "random"), "WindowStagger"),
        (lambda: SlidingEventTimeWindows.of(10, 0), "slide must be more than 0"),
        (lambda: SlidingProcessingTimeWindows.of(10, 5, -5), "offset of -5 ms must be less"),
        (lambda: EventTimeSessionWindows.with_gap(Time.seconds(0)), "gap must be more than 0"),
        (lambda: ProcessingTimeSessionWindows.with_gap(Time.seconds(-1)), "gap must be more"),
        (lambda: EventTimeSessionWindows.with_dynamic_gap(5), "SessionWindowTimeGapExtractor"),
        (lambda: CountTrigger.of(0), "CountTrigger: the size"),
        (lambda: ContinuousEventTimeTrigger.of(Time.seconds(0)), "interval must be more than 0"),
        (lambda: ContinuousProcessingTimeTrigger(-1), "interval must be more than 0"),
        (lambda: PurgingTrigger.of("count"), "needs a Trigger"),
    ],
)
def test_windows_that_cannot_be_are_refused(make, message):
    with pytest.raises(ProgramError, match=message):
        make()


TUMBLING = TumblingEventTimeWindows.of(10)


@pytest.mark.parametrize(
    ("use", "message"),
    [
        (lambda s: s.window("minutely"), "window.. needs a WindowAssigner"),
        (lambda s: s.count_window(0), "size must be a whole number from 1"),
        (lambda s: s.window(TUMBLING).trigger("count"), "trigger.. needs a Trigger"),
        (lambda s: s.window(TUMBLING).evictor(3), "evictor.. needs an Evictor"),
        (lambda s: s.window(TUMBLING).allowed_lateness(-1), "cannot be negative"),
        (lambda s: s.window(TUMBLING).side_output_late_data("late"), "needs an OutputTag"),
        (
            lambda s: s.window(TumblingProcessingTimeWindows.of(10)).allowed_lateness(5),
            "no meaning for TumblingProcessingTimeWindows",
        ),
        (lambda s: s.window(GlobalWindows.create()).allowed_lateness(5), "no meaning for Global"),
        (
            lambda s: (
                s.window(EventTimeSessionWindows.with_gap(5))
                .trigger(NeverTrigger())
                .reduce(operator.add)
            ),
            "NeverTrigger cannot be used with EventTimeSessionWindows",
        ),
        (
            lambda s: (
                s.window(EventTimeSessionWindows.with_gap(5))
                .trigger(PurgingTrigger.of(NeverTrigger()))
                .reduce(operator.add)
            ),
            "PurgingTrigger cannot be used with EventTimeSessionWindows",
        ),
        (lambda s: s.window(TUMBLING).reduce(5), "reduce.. needs a function"),
        (lambda s: s.window(TUMBLING).aggregate(max), "AggregateFunction"),
        (lambda s: s.window(TUMBLING).process(max), "needs a ProcessWindowFunction"),
        (lambda s: s.window(TUMBLING).apply(5), "apply.. needs a function"),
        (lambda s: s.window(TUMBLING).reduce(max, max), "as its window function"),
        (lambda s: s.window_all(TUMBLING).process(Starts()), "needs a ProcessAllWindowFunction"),
        (lambda s: s.join("other"), "join.. needs a DataStream"),
    ],
)
def test_programs_that_cannot_work_are_refused(stream, use, message):
    with pytest.raises(ProgramError, match=message):
        use(stream.key_by(itself))


def test_streams_of_two_environments_cannot_be_joined(stream):
    other = StreamExecutionEnvironment.get_execution_environment().from_collection([1])
    with pytest.raises(ProgramError, match="different environments"):
        stream.join(other)


def test_the_policy_for_late_records_is_a_setting(stream):
    stream.print()
    program = stream.get_execution_environment()._program

    def fails(**values):
        return assemble(program, values, None).settings.fail_on_late_records

    assert not fails()
    assert not fails(**{"penstock.late-records": "drop"})
    assert fails(**{"penstock.late-records": "fail"})
    with pytest.raises(ConfigurationError, match="drop, fail"):
        fails(**{"penstock.late-records": "keep"})


class Starts(ProcessWindowFunction):
    def process(self, key, context, elements):
        yield key, context.window().start, sorted(elements)


# --- in slots -------------------------------------------------------------------------------------


def test_types_and_names(stream):
    typed = stream.map(itself, Types.LONG()).key_by(itself).window(TUMBLING)
    assert typed.get_input_type() == Types.LONG()
    assert typed.get_execution_environment() is stream.get_execution_environment()
    assert typed.sum().get_type() == Types.LONG()
    assert typed.sum().get_name() == "Window Sum"
    everything = stream.key_by(itself).window_all(TUMBLING).sum()
    assert everything.get_name() == "Window All Sum"


def test_windows_by_the_clock_run_in_slots_and_survive_a_restart():
    def build(stream):
        windows = stream.key_by(lambda value: value % 2)
        return windows.window(TumblingProcessingTimeWindows.of(Time.seconds(1))).process(Starts())

    with OperatorHarness(build, parallelism=2) as harness:
        harness.process(1, 2, 3)
        snapshot = harness.snapshot()
        harness.process(5)
        harness.restore(snapshot, parallelism=1)
        harness.advance_processing_time(999)
        harness.process(4)
        assert harness.output == []
        harness.advance_processing_time(1)
        assert sorted(harness.output) == [(0, 0, [2, 4]), (1, 0, [1, 3])]
        harness.advance_processing_time(10_000)
        assert len(harness.output) == 2


def test_side_outputs_of_windows_run_in_slots():
    many = OutputTag("many")

    class Split(ProcessWindowFunction):
        def process(self, key, context, elements):
            values = list(elements)
            yield (many, values) if len(values) > 1 else values

    def build(stream):
        return stream.key_by(itself).window(TumblingProcessingTimeWindows.of(10)).process(Split())

    with OperatorHarness(build, side_outputs=[many]) as harness:
        harness.process(1, 2, 1)
        harness.advance_processing_time(10)
        assert harness.output == [[2]]
        assert harness.side_output(many) == [[1, 1]]


def test_a_window_that_fires_again_does_not_change_what_it_gave():
    def build(stream):
        windows = stream.key_by(lambda value: 0).window(GlobalWindows.create())
        return windows.trigger(CountTrigger.of(1)).reduce(lambda a, b: a.extend(b) or a)

    with OperatorHarness(build) as harness:
        harness.process([1], [2])
        assert harness.output == [[1], [1, 2]]


def test_the_last_records_of_everything():
    def build(stream):
        windows = stream.window_all(GlobalWindows.create()).trigger(CountTrigger.of(2))
        return windows.evictor(CountEvictor.of(3)).reduce(operator.add)

    with OperatorHarness(build, parallelism=2) as harness:
        harness.process(1, 2, 3, 4)
        assert harness.output == [3, 9]


def test_event_time_windows_without_timestamps_say_what_to_do():
    with OperatorHarness(lambda s: s.key_by(itself).window(TUMBLING).sum()) as harness:
        with pytest.raises(ProgramError, match="assign_timestamps_and_watermarks") as raised:
            harness.process(1)
        assert "Window Sum" in str(raised.value)


@pytest.mark.parametrize("lateness", [0, 5])
def test_event_time_windows_run_in_slots(lateness):
    late = OutputTag("late")

    def build(stream):
        windows = stream.key_by(lambda value: value[0]).window(TUMBLING)
        windows.allowed_lateness(lateness).side_output_late_data(late)
        return windows.reduce(lambda a, b: (a[0], a[1] + b[1]))

    with OperatorHarness(build, side_outputs=[late]) as harness:

        def process(timestamp, *value):
            harness.process(value, timestamp=timestamp)

        for timestamp, key, value in ((1, "a", 1), (2, "b", 10), (9, "a", 2), (10, "a", 4)):
            process(timestamp, key, value)
        harness.advance_watermark(8)
        snapshot = harness.snapshot()
        process(3, "a", 100)
        harness.restore(snapshot)
        process(3, "a", 8)
        assert harness.output == []
        harness.advance_watermark(15)
        assert sorted(harness.output) == [("a", 11), ("b", 10)]
        process(5, "a", 1)
        assert harness.side_output(late) == [("a", 1)]
        harness.end_input()
        assert sorted(harness.output) == [("a", 4), ("a", 11), ("b", 10)]


# --- joins ----------------------------------------------------------------------------------------


def joined(method, function):
    def build(left, right):
        pair = getattr(left, method)(right).where(itself).equal_to(lambda value: value[0])
        return pair.window(TumblingProcessingTimeWindows.of(10)).apply(function)

    return build


def run(method, function):
    with OperatorHarness(joined(method, function), inputs=2) as harness:
        harness.process("a", "b", "a")
        harness.process("a1", "a2", "c3", input=2)
        harness.advance_processing_time(10)
        harness.process("c")
        harness.advance_processing_time(10)
        return sorted(harness.output)


def test_a_join_gives_every_pair_of_a_key_and_window():
    class Pair(JoinFunction):
        def join(self, first, second):
            return first, second

    expected = [("a", "a1"), ("a", "a1"), ("a", "a2"), ("a", "a2")]
    assert run("join", Pair()) == expected
    assert run("join", lambda first, second: (first, second)) == expected


def test_a_flat_join_gives_any_number_of_results():
    class Second(FlatJoinFunction):
        def open(self, runtime_context):
            self.wanted = "2"

        def join(self, first, second):
            if second[1] == self.wanted:
                yield second

    assert run("join", Second()) == ["a2", "a2"]


def test_a_co_group_sees_also_what_has_no_partner():
    class Both(CoGroupFunction):
        def co_group(self, first, second):
            yield sorted(first), sorted(second)

    expected = [([], ["c3"]), (["a", "a"], ["a1", "a2"]), (["b"], []), (["c"], [])]
    assert run("co_group", Both()) == expected
    assert run("co_group", lambda first, second: [(sorted(first), sorted(second))]) == expected


def test_a_join_can_have_a_trigger_and_an_evictor():
    def build(left, right):
        pair = left.join(right).where(itself).equal_to(itself)
        windows = pair.window(GlobalWindows.create())
        windows.trigger(CountTrigger.of(2)).evictor(CountEvictor.of(2))
        return windows.apply(lambda first, second: (first, second))

    with OperatorHarness(build, inputs=2) as harness:
        harness.process(1)
        harness.process(1, 1, input=2)
        assert harness.output == [(1, 1)]


def test_a_join_by_the_clock_has_no_lateness(stream):
    other = stream.map(itself)
    windows = stream.join(other).where(itself).equal_to(itself).window(GlobalWindows.create())
    with pytest.raises(ProgramError, match="no meaning"):
        windows.allowed_lateness(5)


def test_time_windows_compare_by_what_they_are():
    assert sorted([TimeWindow(5, 6), TimeWindow(0, 9)]) == [TimeWindow(0, 9), TimeWindow(5, 6)]
    assert {TimeWindow(0, 1): 1}[TimeWindow(0, 1)] == 1
