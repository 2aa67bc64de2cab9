"""Interval joins, against every pair of a plain double loop."""

from __future__ import annotations

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from penstock.common import Time
from penstock.datastream import OutputTag
from penstock.datastream.interval_join import ProcessJoinFunction
from penstock.errors import ProgramError
from penstock.testing import OperatorHarness


def joined(lower, upper, function=lambda left, right: (left, right), change=lambda j: j):
    def build(left, right):
        join = left.key_by(lambda v: v[0]).interval_join(right.key_by(lambda v: v[0]))
        bounds = join.between(Time.milliseconds(lower), Time.milliseconds(upper))
        return change(bounds).process(function)

    return build


records = st.tuples(st.sampled_from([1, 2]), st.sampled_from("ab"), st.integers(0, 30))


@given(
    st.lists(records, max_size=14),
    st.integers(-8, 8),
    st.integers(0, 10),
    st.lists(st.integers(0, 30), max_size=3),
)
@settings(max_examples=60)
# The second record comes when its partner's time is the watermark: it is not late yet.
@example([(1, "a", 1), (2, "a", 1)], 0, 0, [1])
def test_every_pair_within_the_bounds_and_no_other(events, lower, width, marks):
    upper = lower + width
    kept = {1: [], 2: []}
    with OperatorHarness(joined(lower, upper), inputs=2) as harness:
        watermark = -1
        for number, (side, key, at) in enumerate(events):
            if number in marks:
                watermark = max(watermark, number)
                harness.advance_watermark(watermark)
            harness.process((key, at, number), input=side, timestamp=at)
            if at >= watermark:
                kept[side].append((key, at, number))
        found = list(harness.output)
    pairs = [
        (left, right)
        for left in kept[1]
        for right in kept[2]
        if left[0] == right[0] and lower <= right[1] - left[1] <= upper
    ]
    assert sorted(found) == sorted(pairs)


def test_exclusive_bounds_leave_the_bounds_out():
    def change(join):
        return join.lower_bound_exclusive().upper_bound_exclusive()

    with OperatorHarness(joined(0, 2, change=change), inputs=2) as harness:
        harness.process(("a", "left"), timestamp=10)
        for at in (10, 11, 12):
            harness.process(("a", at), input=2, timestamp=at)
        assert harness.output == [(("a", "left"), ("a", 11))]


class Noting(ProcessJoinFunction):
    """Notes when it is opened and closed."""

    noted: list[str] = []

    def open(self, runtime_context):
        self.noted.append("open")

    def process_element(self, left, right, ctx):
        yield left, right

    def close(self):
        self.noted.append("close")


def test_the_function_is_opened_and_closed():
    Noting.noted = []
    with OperatorHarness(joined(0, 2, Noting()), inputs=2):
        assert Noting.noted == ["open"]
    assert Noting.noted == ["open", "close"]


LATE = OutputTag("late")


def test_late_records_go_to_their_side_output_or_are_counted():
    def change(join):
        return join.side_output_left_late_data(LATE)

    build = joined(0, 5, change=change)
    with OperatorHarness(build, inputs=2, side_outputs=[LATE]) as harness:
        harness.advance_watermark(100)
        harness.process(("a", 1), timestamp=99)
        harness.process(("a", 2), input=2, timestamp=99)
        assert harness.side_output(LATE) == [("a", 1)]
        dropped = [m for m in harness.metrics() if m.name == "numLateRecordsDropped"]
        assert [m.value for m in dropped] == [1]
        assert harness.output == []


class Times(ProcessJoinFunction):
    def process_element(self, left, right, ctx):
        yield ctx.get_left_timestamp(), ctx.get_right_timestamp(), ctx.get_timestamp()
        yield LATE, "aside"


def test_the_context_knows_both_times_and_side_outputs_work():
    build = joined(-5, 5, Times())
    with OperatorHarness(build, inputs=2, side_outputs=[LATE]) as harness:
        harness.process(("a", 1), timestamp=7)
        harness.process(("a", 2), input=2, timestamp=4)
        assert harness.output == [(7, 4, 7)]
        assert harness.side_output(LATE) == ["aside"]


def test_what_can_find_no_partner_any_more_is_forgotten():
    with OperatorHarness(joined(-2, 3), inputs=2) as harness:
        harness.process(("a", 1), timestamp=10)
        harness.process(("a", 2), input=2, timestamp=20)
        # A record at 13 is not late yet when the watermark is 13, and would meet the left one.
        harness.advance_watermark(13)
        assert harness.state("left", "a") == {10: [("a", 1)]}
        harness.advance_watermark(14)
        assert harness.state("left", "a") == {}
        harness.advance_watermark(22)
        assert harness.state("right", "a") == {20: [("a", 2)]}
        harness.advance_watermark(30)
        assert harness.state("right", "a") == {}


def test_a_record_without_a_timestamp_is_an_error():
    with (
        pytest.raises(Exception, match="assign_timestamps_and_watermarks"),
        OperatorHarness(joined(0, 1), inputs=2) as harness,
    ):
        harness.process(("a", 1))


def test_bounds_and_functions_are_checked_where_the_program_is_written():
    for build, message in [
        (joined(3, 2), "above the upper"),
        (joined(0, 1, function=3), "needs a ProcessJoinFunction"),
    ]:
        with pytest.raises(ProgramError, match=message):
            OperatorHarness(build, inputs=2)
    with pytest.raises(ProgramError, match="KeyedStream"):
        OperatorHarness(lambda a, b: a.key_by(lambda v: v).interval_join(b), inputs=2)
