"""Window operators: what they emit and when, and that nothing of a window stays."""

from __future__ import annotations

import operator

import pytest

from penstock.common import Time, Types
from penstock.common.output_tag import OutputTag
from penstock.datastream import (
    AggregateFunction,
    DataStream,
    ProcessWindowFunction,
    ReduceFunction,
    WindowFunction,
)
from penstock.datastream.functions import AllWindowFunction, ProcessAllWindowFunction
from penstock.datastream.state import ReducingStateDescriptor, ValueStateDescriptor
from penstock.datastream.window import (
    ContinuousEventTimeTrigger,
    ContinuousProcessingTimeTrigger,
    CountTrigger,
    DynamicEventTimeSessionWindows,
    DynamicProcessingTimeSessionWindows,
    EventTimeSessionWindows,
    EventTimeTrigger,
    GlobalWindows,
    ProcessingTimeSessionWindows,
    ProcessingTimeTrigger,
    PurgingTrigger,
    SlidingEventTimeWindows,
    SlidingProcessingTimeWindows,
    TimeWindow,
    Trigger,
    TriggerResult,
    TumblingEventTimeWindows,
    TumblingProcessingTimeWindows,
    WindowAssigner,
    WindowStagger,
)
from penstock.errors import LateRecordError, ProgramError, ResultShapeError, StateError
from penstock.runtime.windowing.operator import WindowProcess
from penstock.runtime.windowing.session_process import SessionProcess
from penstock.runtime.windowing.slices import SliceProcess
from penstock.runtime.windowing.tumbling import TumblingProcess
from penstock.testing.window_rig import WindowRig

MAX = (1 << 63) - 1
TUMBLING = TumblingEventTimeWindows.of(Time.milliseconds(10))


def first(value):
    return value[0]


def add(a, b):
    return (a[0], a[1] + b[1])


def keyed(assigner, finish, *settings, **rig):
    """A rig for `stream.key_by(first).window(assigner)` with settings and a last call."""

    def build(stream: DataStream) -> DataStream:
        windowed = stream.key_by(first).window(assigner)
        for name, value in settings:
            getattr(windowed, name)(value)
        return finish(windowed)

    return WindowRig(build, **rig)


def summed(assigner, *settings, **rig):
    return keyed(assigner, lambda windowed: windowed.reduce(add), *settings, **rig)


def listed(assigner, *settings, **rig):
    return keyed(assigner, lambda windowed: windowed.process(Listing()), *settings, **rig)


class Listing(ProcessWindowFunction):
    def process(self, key, context, elements):
        window = context.window()
        where = (window.start, window.end) if isinstance(window, TimeWindow) else None
        yield key, where, [value for _, value in elements]


class Mean(AggregateFunction):
    def create_accumulator(self):
        return (0, 0)

    def add(self, value, accumulator):
        return accumulator[0] + value[1], accumulator[1] + 1

    def get_result(self, accumulator):
        return accumulator[0] / accumulator[1]

    def merge(self, acc_a, acc_b):
        return acc_a[0] + acc_b[0], acc_a[1] + acc_b[1]


class Unmerged(Mean):
    def merge(self, acc_a, acc_b):
        raise NotImplementedError


# --- tumbling -------------------------------------------------------------------------------------


def test_a_tumbling_window_fires_when_the_watermark_passes_its_last_millisecond():
    rig = summed(TUMBLING)
    rig.process(("a", 1), 3)
    rig.process(("b", 5), 12)
    rig.process(("a", 2), 9)
    rig.advance_watermark(8)
    assert rig.output == []
    rig.advance_watermark(9)
    assert rig.output == [(None, ("a", 3), 9)]
    rig.advance_watermark(MAX)
    assert rig.output == [(None, ("a", 3), 9), (None, ("b", 5), 19)]
    assert rig.entries() == 0


def test_windows_begin_where_the_offset_says_also_before_the_epoch():
    rig = listed(TumblingEventTimeWindows.of(Time.milliseconds(10), Time.milliseconds(-3)))
    for timestamp in (-4, -3, 6, 7):
        rig.process(("a", timestamp), timestamp)
    rig.advance_watermark(MAX)
    assert rig.take() == [
        ("a", (-13, -3), [-4]),
        ("a", (-3, 7), [-3, 6]),
        ("a", (7, 17), [7]),
    ]


@pytest.mark.parametrize("assigner", [TUMBLING, SlidingEventTimeWindows.of(10, 5)])
def test_a_record_without_a_timestamp_is_an_error_in_event_time(assigner):
    with pytest.raises(ProgramError, match="assign_timestamps_and_watermarks"):
        summed(assigner).process(("a", 1))


def test_aggregate_alone_and_with_a_window_function():
    class Named(ProcessWindowFunction):
        def process(self, key, context, elements):
            [mean] = elements
            return [(key, context.window().end, mean)]

    alone = keyed(TUMBLING, lambda windowed: windowed.aggregate(Mean()))
    named = keyed(TUMBLING, lambda windowed: windowed.aggregate(Mean(), Named()))
    for rig in (alone, named):
        rig.process(("a", 1), 1)
        rig.process(("a", 2), 2)
        rig.advance_watermark(9)
    assert alone.take() == [1.5]
    assert named.take() == [("a", 10, 1.5)]


def test_reduce_with_a_window_function_holds_one_value():
    class Named(WindowFunction):
        def apply(self, key, window, inputs):
            return [(key, window.start, list(inputs))]

    rig = keyed(TUMBLING, lambda windowed: windowed.reduce(add, window_function=Named()))
    for value in range(5):
        rig.process(("a", value), value)
    assert rig.backend.table("__windows", "tumbling windows").entries == {"a": {0: ("a", 10)}}
    rig.advance_watermark(9)
    assert rig.take() == [("a", 0, [("a", 10)])]


def test_rich_functions_are_opened_and_closed():
    class Rich(ReduceFunction):
        def open(self, runtime_context):
            self.bonus = 100

        def reduce(self, value1, value2):
            return (value1[0], value1[1] + value2[1] + self.bonus)

    rig = keyed(TUMBLING, lambda windowed: windowed.reduce(Rich()))
    rig.process(("a", 1), 1)
    rig.process(("a", 2), 2)
    rig.advance_watermark(9)
    assert rig.take() == [("a", 103)]


@pytest.mark.parametrize(
    ("method", "expected"),
    [
        ("sum", ("a", 9, "x")),
        ("min", ("a", 2, "x")),
        ("max", ("a", 4, "x")),
        ("min_by", ("a", 2, "y")),
        ("max_by", ("a", 4, "z")),
    ],
)
def test_sums_and_extremes_of_a_field(method, expected):
    rig = keyed(TUMBLING, lambda windowed: getattr(windowed, method)(1))
    for value, name in ((3, "x"), (2, "y"), (4, "z")):
        rig.process(("a", value, name), value)
    rig.advance_watermark(9)
    assert rig.take() == [expected]


def test_side_outputs_of_a_process_window_function():
    class Sides(ProcessWindowFunction):
        def process(self, key, context, elements):
            yield OutputTag("count"), len(list(elements))
            yield key

    rig = keyed(TUMBLING, lambda windowed: windowed.process(Sides()))
    rig.process(("a", 1), 1)
    rig.advance_watermark(9)
    assert rig.output == [("count", 1, 9), (None, "a", 9)]


def test_a_window_function_that_returns_a_str_is_refused():
    rig = keyed(TUMBLING, lambda windowed: windowed.apply(lambda key, window, inputs: "abc"))
    rig.process(("a", 1), 1)
    with pytest.raises(ResultShapeError, match="wrap it in a list"):
        rig.advance_watermark(9)


def test_staggered_windows_are_shifted_together():
    natural = TumblingProcessingTimeWindows.of(10, 0, WindowStagger.NATURAL)
    rig = listed(natural, processing_time=1_003)
    rig.process(("a", 1))
    rig.advance_processing_time(9)
    rig.process(("a", 2))
    rig.advance_processing_time(10)
    assert rig.take() == [("a", (1003, 1013), [1, 2])]
    rig = listed(TumblingEventTimeWindows.of(10, 0, WindowStagger.RANDOM))
    for timestamp in range(40):
        rig.process(("a", timestamp), timestamp)
    rig.advance_watermark(MAX)
    starts = [start for _, (start, end), _ in rig.take() if end - start == 10]
    assert len(starts) in (4, 5) and {start % 10 for start in starts} == {starts[0] % 10}


# --- late records ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "assigner",
    [TUMBLING, SlidingEventTimeWindows.of(10, 5), EventTimeSessionWindows.with_gap(10)],
)
def test_late_records_are_counted_or_diverted_or_an_error(assigner):
    late = OutputTag("late")
    for finish in (lambda w: w.sum(1), lambda w: w.reduce(add), lambda w: w.process(Listing())):
        counting = keyed(assigner, finish)
        diverting = keyed(assigner, finish, ("side_output_late_data", late))
        failing = keyed(assigner, finish, fail_on_late_records=True)
        for rig in (counting, diverting, failing):
            rig.advance_watermark(100)
        counting.process(("a", 1), 50)
        assert (counting.output, counting.dropped(), counting.entries()) == ([], 1, 0)
        diverting.process(("a", 1), 50)
        assert (diverting.output, diverting.dropped()) == ([("late", ("a", 1), 50)], 0)
        with pytest.raises(LateRecordError, match="timestamp 50 met the watermark 100"):
            failing.process(("a", 1), 50)


def test_a_record_behind_the_watermark_whose_window_is_open_is_not_late():
    rig = summed(TUMBLING)
    rig.advance_watermark(8)
    rig.process(("a", 1), 3)
    rig.advance_watermark(9)
    assert rig.take() == [("a", 1)] and rig.dropped() == 0


def test_within_the_allowed_lateness_a_window_fires_again():
    rig = summed(TUMBLING, ("allowed_lateness", 5))
    rig.process(("a", 1), 1)
    rig.advance_watermark(9)
    rig.process(("a", 2), 2)
    assert rig.take() == [("a", 1), ("a", 3)]
    rig.advance_watermark(14)
    assert rig.entries() == 0
    rig.process(("a", 4), 3)
    assert rig.take() == [] and rig.dropped() == 1


def test_a_sliding_record_is_late_only_when_all_its_windows_are():
    for rig in (
        summed(SlidingEventTimeWindows.of(10, 5)),
        keyed(SlidingEventTimeWindows.of(10, 5), lambda w: w.sum(1)),
    ):
        rig.advance_watermark(12)
        rig.process(("a", 1), 7)
        rig.advance_watermark(MAX)
        assert rig.output == [(None, ("a", 1), 14)] and rig.dropped() == 0


# --- sliding --------------------------------------------------------------------------------------


def test_a_record_is_in_every_window_that_holds_its_time():
    rig = listed(SlidingEventTimeWindows.of(Time.milliseconds(10), Time.milliseconds(4)))
    rig.process(("a", 1), 9)
    rig.advance_watermark(MAX)
    assert rig.take() == [("a", (0, 10), [1]), ("a", (4, 14), [1]), ("a", (8, 18), [1])]
    assert rig.entries() == 0


def test_only_functions_that_can_merge_are_sliced():
    assigner = SlidingEventTimeWindows.of(10, 4)

    def chosen(finish):
        return type(keyed(assigner, finish).function)

    assert chosen(lambda w: w.aggregate(Mean())) is SliceProcess
    assert chosen(lambda w: w.sum(1)) is SliceProcess
    assert chosen(lambda w: w.aggregate(Unmerged())) is WindowProcess
    assert chosen(lambda w: w.reduce(add)) is WindowProcess
    assert chosen(lambda w: w.min_by(1)) is WindowProcess


def test_slices_survive_a_merge_that_changes_its_arguments():
    class Gather(AggregateFunction):
        def create_accumulator(self):
            return []

        def add(self, value, accumulator):
            accumulator.append(value[1])
            return accumulator

        def get_result(self, accumulator):
            return list(accumulator)

        def merge(self, acc_a, acc_b):
            acc_a.extend(acc_b)
            return acc_a

    rig = keyed(SlidingEventTimeWindows.of(12, 4), lambda w: w.aggregate(Gather()))
    assert isinstance(rig.function, SliceProcess)
    for timestamp in (1, 5, 9, 13, 17):
        rig.process(("a", timestamp), timestamp)
    rig.advance_watermark(20)
    rig.process(("a", 14), 14)
    rig.advance_watermark(MAX)
    assert rig.take() == [
        [1],
        [1, 5],
        [1, 5, 9],
        [5, 9, 13],
        [9, 13, 17],
        [13, 14, 17],
        [17],
    ]
    assert rig.entries() == 0


def test_a_window_of_many_slices_needs_few_merges():
    rig = keyed(SlidingEventTimeWindows.of(60, 1), lambda w: w.aggregate(Mean()))
    merge, calls = rig.function._merge, []
    rig.function._merge = lambda one, other: calls.append(1) or merge(one, other)
    for timestamp in range(600):
        rig.process(("a", 1), timestamp)
        rig.advance_watermark(timestamp)
    assert len(rig.output) == 600
    assert 600 < len(calls) < 3 * 600


# --- sessions -------------------------------------------------------------------------------------


SESSIONS = EventTimeSessionWindows.with_gap(Time.milliseconds(10))


def test_sessions_that_touch_are_one():
    for lateness in (0, 5):
        rig = listed(SESSIONS, ("allowed_lateness", lateness))
        for timestamp in (30, 0, 20, 10, 51):
            rig.process(("a", timestamp), timestamp)
        rig.advance_watermark(MAX)
        assert [(key, where, sorted(values)) for key, where, values in rig.take()] == [
            ("a", (0, 40), [0, 10, 20, 30]),
            ("a", (51, 61), [51]),
        ]
        assert rig.entries() == 0
        assert type(rig.function) is (WindowProcess if lateness else SessionProcess)


def test_a_record_that_is_late_alone_joins_an_open_session():
    for lateness in (0, 1):
        rig = listed(SESSIONS, ("allowed_lateness", lateness))
        rig.process(("a", 1), 20)
        rig.advance_watermark(22 + lateness)
        rig.process(("a", 2), 12)
        rig.process(("a", 3), 1)
        rig.advance_watermark(MAX)
        assert rig.take() == [("a", (12, 30), [1, 2])]
        assert rig.dropped() == 1


@pytest.mark.parametrize("sessions", [EventTimeSessionWindows, DynamicEventTimeSessionWindows])
def test_the_gap_may_come_from_the_record(sessions):
    assigner = sessions.with_dynamic_gap(lambda value: value[1])
    rig = listed(assigner)
    rig.process(("a", 5), 0)
    rig.process(("a", 20), 7)
    rig.process(("a", 1), 15)
    rig.advance_watermark(MAX)
    assert rig.take() == [("a", (0, 5), [5]), ("a", (7, 27), [20, 1])]
    with pytest.raises(ResultShapeError, match="returned 0"):
        rig.process(("a", 0), 0)
    with pytest.raises(ResultShapeError, match="returned -4"):
        rig.process(("a", -4), 0)


def test_accumulators_of_sessions_are_merged():
    rig = keyed(SESSIONS, lambda windowed: windowed.aggregate(Mean()))
    rig.process(("a", 1), 0)
    rig.process(("a", 5), 18)
    rig.process(("a", 3), 9)
    rig.advance_watermark(MAX)
    assert rig.take() == [3.0]


def test_sessions_by_the_clock():
    rig = listed(ProcessingTimeSessionWindows.with_gap(Time.milliseconds(10)))
    rig.process(("a", 1))
    rig.advance_processing_time(6)
    rig.process(("a", 2))
    rig.advance_processing_time(9)
    assert rig.output == []
    rig.advance_processing_time(1)
    assert rig.take() == [("a", (0, 16), [1, 2])]
    assert rig.entries() == 0


@pytest.mark.parametrize(
    "sessions", [ProcessingTimeSessionWindows, DynamicProcessingTimeSessionWindows]
)
def test_sessions_by_the_clock_whose_gap_comes_from_the_record(sessions):
    rig = listed(sessions.with_dynamic_gap(lambda value: value[1]))
    rig.process(("a", 5))
    rig.advance_processing_time(4)
    rig.process(("a", 20))
    rig.advance_processing_time(19)
    assert rig.output == []
    rig.advance_processing_time(1)
    assert rig.take() == [("a", (0, 24), [5, 20])]


def test_the_state_of_a_counting_trigger_is_merged_with_its_sessions():
    rig = listed(SESSIONS, ("trigger", CountTrigger.of(3)))
    rig.process(("a", 1), 0)
    rig.process(("a", 2), 18)
    assert rig.take() == []
    rig.process(("a", 3), 9)
    assert rig.take() == [("a", (0, 28), [1, 2, 3])]
    rig.advance_watermark(MAX)
    assert rig.take() == [] and rig.entries() == 0


def test_a_merged_session_fires_when_a_part_of_it_would_have_fired():
    trigger = ContinuousEventTimeTrigger.of(Time.milliseconds(30))
    rig = listed(SESSIONS, ("trigger", trigger))
    rig.process(("a", 1), 5)
    rig.process(("a", 2), 12)
    rig.advance_watermark(13)
    assert rig.take() == []
    rig.advance_watermark(14)
    assert rig.take() == [("a", (5, 22), [1, 2])]
    rig.advance_watermark(MAX)
    assert rig.take() == [("a", (5, 22), [1, 2])]
    assert rig.entries() == 0


def test_a_purged_session_still_grows():
    rig = listed(SESSIONS, ("trigger", PurgingTrigger.of(CountTrigger.of(2))))
    rig.process(("a", 1), 0)
    rig.process(("a", 2), 5)
    rig.process(("a", 3), 14)
    rig.process(("a", 4), 20)
    assert rig.take() == [("a", (0, 15), [1, 2]), ("a", (0, 30), [3, 4])]
    rig.advance_watermark(MAX)
    assert rig.take() == [] and rig.entries() == 0


# --- processing time, global and count windows ----------------------------------------------------


def test_windows_by_the_clock_need_no_timestamps():
    tumbling = listed(TumblingProcessingTimeWindows.of(Time.milliseconds(10)), processing_time=5)
    sliding = listed(SlidingProcessingTimeWindows.of(10, 5), processing_time=5)
    for rig in (tumbling, sliding):
        rig.process(("a", 1))
        rig.advance_processing_time(10)
        rig.process(("a", 2))
        rig.advance_processing_time(100)
    assert tumbling.take() == [("a", (0, 10), [1]), ("a", (10, 20), [2])]
    assert sliding.take() == [
        ("a", (0, 10), [1]),
        ("a", (5, 15), [1]),
        ("a", (10, 20), [2]),
        ("a", (15, 25), [2]),
    ]
    assert tumbling.entries() == sliding.entries() == 0


def test_a_global_window_never_fires_by_itself():
    rig = listed(GlobalWindows.create())
    rig.process(("a", 1))
    rig.advance_watermark(MAX)
    assert rig.output == []
    rig = listed(GlobalWindows.create(), ("trigger", CountTrigger.of(2)))
    for value in range(4):
        rig.process(("a", value))
    assert rig.take() == [("a", None, [0, 1]), ("a", None, [0, 1, 2, 3])]


def test_count_windows():
    def rig(*args):
        return WindowRig(lambda s: s.key_by(first).count_window(*args).process(Listing()))

    tumbling, sliding = rig(2), rig(3, 2)
    for each in (tumbling, sliding):
        for value in range(7):
            each.process(("a", value))
    assert [values for _, _, values in tumbling.take()] == [[0, 1], [2, 3], [4, 5]]
    assert [values for _, _, values in sliding.take()] == [[0, 1, 2], [2, 3, 4], [4, 5, 6]]
    # What is full is not kept: only the counts and the open windows are.
    assert tumbling.backend.table("__windows", "windows").entries["a"].keys() == {
        type(next(iter(tumbling.backend.table("__windows", "windows").entries["a"])))(3)
    }


def test_windows_of_a_stream_without_keys():
    class All(ProcessAllWindowFunction):
        def process(self, context, elements):
            yield context.window().start, list(elements)

    class Count(AllWindowFunction):
        def apply(self, window, inputs):
            return [len(list(inputs))]

    process = WindowRig(lambda s: s.window_all(TUMBLING).process(All()))
    apply = WindowRig(lambda s: s.window_all(TUMBLING).apply(Count()))
    plain = WindowRig(lambda s: s.window_all(TUMBLING).apply(lambda w, i: [(w.end, len(i))]))
    counts = WindowRig(lambda s: s.count_window_all(2).reduce(operator.add))
    for rig in (process, apply, plain, counts):
        for value in (1, 2):
            rig.process(value, value)
        rig.advance_watermark(9)
    assert process.take() == [(0, [1, 2])]
    assert apply.take() == [2]
    assert plain.take() == [(10, 2)]
    assert counts.take() == [3]


# --- triggers -------------------------------------------------------------------------------------


def test_continuous_triggers_fire_at_multiples_and_at_the_end():
    rig = listed(
        TumblingEventTimeWindows.of(100),
        ("trigger", ContinuousEventTimeTrigger.of(Time.milliseconds(30))),
    )
    rig.process(("a", 1), 40)
    rig.advance_watermark(59)
    assert rig.take() == []
    rig.advance_watermark(60)
    rig.process(("a", 2), 70)
    rig.advance_watermark(98)
    assert [values for _, _, values in rig.take()] == [[1], [1, 2]]
    rig.advance_watermark(99)
    assert [values for _, _, values in rig.take()] == [[1, 2]]
    assert rig.entries() == 0
    rig = listed(
        TumblingProcessingTimeWindows.of(100),
        ("trigger", ContinuousProcessingTimeTrigger.of(Time.milliseconds(30))),
    )
    rig.process(("a", 1))
    rig.advance_processing_time(45)
    rig.process(("a", 2))
    rig.advance_processing_time(55)
    assert [values for _, _, values in rig.take()] == [[1], [1, 2], [1, 2], [1, 2]]
    assert rig.entries() == 0


def test_a_trigger_decides_by_which_time_windows_fire():
    """Event-time windows by the clock, processing-time windows by the watermark."""
    rig = listed(TUMBLING, ("trigger", ProcessingTimeTrigger.create()))
    rig.process(("a", 1), 3)
    rig.advance_watermark(8)
    assert rig.take() == []
    rig.advance_processing_time(10)
    assert rig.take() == [("a", (0, 10), [1])]
    rig = listed(TumblingProcessingTimeWindows.of(10), ("trigger", EventTimeTrigger.create()))
    rig.process(("a", 1))
    rig.advance_processing_time(8)
    assert rig.take() == []
    rig.advance_watermark(9)
    assert rig.take() == [("a", (0, 10), [1])]


def test_purging_throws_away_what_was_fired():
    rig = listed(
        TUMBLING, ("trigger", PurgingTrigger.of(EventTimeTrigger())), ("allowed_lateness", 9)
    )
    rig.process(("a", 1), 1)
    rig.advance_watermark(9)
    rig.process(("a", 2), 2)
    assert [values for _, _, values in rig.take()] == [[1], [2]]


class Early(Trigger):
    """Fires with every record above a limit that it keeps per window, and at the end."""

    seen = ReducingStateDescriptor("seen", max, Types.LONG())

    def on_element(self, element, timestamp, window, ctx):
        ctx.register_event_time_timer(window.max_timestamp())
        seen = ctx.get_partitioned_state(self.seen)
        before = seen.get()
        seen.add(element[1])
        return (
            TriggerResult.FIRE if before is None or before < element[1] else TriggerResult.CONTINUE
        )

    def on_processing_time(self, time, window, ctx):
        return TriggerResult.CONTINUE

    def on_event_time(self, time, window, ctx):
        return TriggerResult.FIRE if time == window.max_timestamp() else TriggerResult.CONTINUE

    def on_merge(self, window, ctx):
        raise AssertionError("these windows do not merge")

    def clear(self, window, ctx):
        ctx.get_partitioned_state(self.seen).clear()


def test_a_trigger_of_ones_own_has_state_per_key_and_window():
    rig = listed(TUMBLING, ("trigger", Early()))
    for key, value, timestamp in (("a", 5, 1), ("a", 3, 2), ("a", 4, 12), ("b", 1, 3), ("a", 6, 4)):
        rig.process((key, value), timestamp)
    assert rig.take() == [
        ("a", (0, 10), [5]),
        ("a", (10, 20), [4]),
        ("b", (0, 10), [1]),
        ("a", (0, 10), [5, 3, 6]),
    ]
    rig.restart()
    rig.process(("a", 6), 5)
    assert rig.take() == []
    rig.advance_watermark(MAX)
    assert len(rig.take()) == 3 and rig.entries() == 0


def test_a_trigger_that_answers_nonsense_is_an_error():
    class Nonsense(Early):
        def on_element(self, element, timestamp, window, ctx):
            return True

    for trigger in (Nonsense(), PurgingTrigger(Nonsense())):
        with pytest.raises(ResultShapeError, match="answered True"):
            listed(TUMBLING, ("trigger", trigger)).process(("a", 1), 1)


# --- state of windows -----------------------------------------------------------------------------


class Counted(ProcessWindowFunction):
    """How often this window and this key have fired."""

    fired = ValueStateDescriptor("fired", Types.LONG())

    def process(self, key, context, elements):
        counts = []
        for store in (context.window_state(), context.global_state()):
            state = store.get_state(self.fired)
            state.update((state.value() or 0) + 1)
            counts.append(state.value())
        yield (*counts, context.current_watermark(), context.current_processing_time())

    def clear(self, context):
        context.window_state().get_state(self.fired).clear()


def test_state_per_window_and_per_key():
    rig = keyed(TUMBLING, lambda w: w.process(Counted()), ("allowed_lateness", 5))
    rig.process(("a", 1), 1)
    rig.advance_watermark(9)
    rig.process(("a", 1), 2)
    rig.process(("a", 1), 12)
    rig.advance_watermark(19)
    assert rig.take() == [(1, 1, 9, 0), (2, 2, 9, 0), (1, 3, 19, 0)]
    rig.advance_watermark(MAX)
    # Of the windows nothing is left; the key's own state is the user's.
    assert rig.entries() == 1
    assert rig.backend.table("fired", "value").entries == {"a": 3}


def test_the_fast_operator_has_window_state_too():
    rig = keyed(TUMBLING, lambda w: w.process(Counted()))
    assert isinstance(rig.function, TumblingProcess)
    rig.process(("a", 1), 1)
    rig.advance_watermark(9)
    assert rig.take() == [(1, 1, 9, 0)]
    assert rig.entries() == 1


def test_sessions_have_no_state_per_window():
    rig = keyed(SESSIONS, lambda w: w.process(Counted()))
    rig.process(("a", 1), 1)
    with pytest.raises(ProgramError, match="global_state"):
        rig.advance_watermark(MAX)


def test_a_checkpoint_of_another_kind_of_window_is_refused():
    rig = summed(TUMBLING)
    rig.process(("a", 1), 1)
    other = summed(TUMBLING, ("allowed_lateness", 5))
    rig._operator = other._operator
    with pytest.raises(StateError, match="tumbling windows"):
        rig.restart()


# --- assigners of one's own -----------------------------------------------------------------------


def test_an_assigner_of_ones_own():
    class Twice(WindowAssigner):
        def assign_windows(self, element, timestamp, context):
            return [TimeWindow(0, 10), TimeWindow(0, 20)][: element[1]]

        def get_default_trigger(self, env):
            return EventTimeTrigger()

        def is_event_time(self):
            return True

    rig = listed(Twice())
    rig.process(("a", 2), 1)
    rig.process(("a", 1), 1)
    rig.process(("a", 0), 1)
    rig.advance_watermark(MAX)
    assert rig.take() == [("a", (0, 10), [2, 1]), ("a", (0, 20), [2])]
    assert rig.dropped() == 0


def test_an_assigner_must_return_windows_in_a_list():
    class Lone(WindowAssigner):
        def assign_windows(self, element, timestamp, context):
            return TimeWindow(0, 10)

        def get_default_trigger(self, env):
            return EventTimeTrigger()

        def is_event_time(self):
            return True

    with pytest.raises(ResultShapeError, match="Lone returned a TimeWindow"):
        listed(Lone()).process(("a", 1), 1)


def test_an_assigner_must_have_a_trigger():
    class NoTrigger(EventTimeSessionWindows):
        def get_default_trigger(self, env):
            return None

    with pytest.raises(ProgramError, match=r"NoTrigger.get_default_trigger\(\) needs a Trigger"):
        summed(NoTrigger(10))


def test_a_merge_that_was_not_written_is_named_when_sessions_need_it():
    class Forgotten(Mean):
        def merge(self, acc_a, acc_b):
            pass

    rig = keyed(SESSIONS, lambda windowed: windowed.aggregate(Forgotten()))
    rig.process(("a", 1), 0)
    rig.process(("a", 5), 18)
    with pytest.raises(ResultShapeError, match=r"merge.. of Forgotten returned None"):
        rig.process(("a", 3), 9)


def test_windows_of_time_are_ordered():
    early, late, longer = TimeWindow(0, 5), TimeWindow(5, 10), TimeWindow(0, 6)
    assert early <= TimeWindow(0, 5) and early <= longer <= late and early < longer
    assert late >= early and not late <= early and late > early
    assert sorted([late, longer, early]) == [early, longer, late]
