"""What functions see of time is the same in a chain and apart: random programs, run both ways."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from penstock.checkpoint.handles import MIN_WATERMARK
from penstock.common import Duration, Time, Types, WatermarkStrategy
from penstock.common.watermark_strategy import WatermarkGenerator
from penstock.datastream import (
    AsyncDataStream,
    AsyncFunction,
    BroadcastProcessFunction,
    CoProcessFunction,
    KeyedBroadcastProcessFunction,
    KeyedCoProcessFunction,
    KeyedProcessFunction,
    OutputTag,
    ProcessFunction,
    ProcessWindowFunction,
)
from penstock.datastream.interval_join import ProcessJoinFunction
from penstock.datastream.state import MapStateDescriptor
from penstock.datastream.window import (
    EventTimeSessionWindows,
    SlidingEventTimeWindows,
    TumblingEventTimeWindows,
)
from penstock.testing import OperatorHarness, local_environment

SEEN: dict[int, list[Any]] = defaultdict(list)
"""What the function at each place of the program saw, in order."""
LATE = OutputTag("late")
SIDE = OutputTag("side")
KEYS = 3


@dataclass(frozen=True)
class Record:
    """A record that says when it happened."""

    number: int
    at: int


# --- what stands in a program -------------------------------------------------------------------


class Watch(ProcessFunction):
    """Notes what it sees, and sends some records aside and every late one away."""

    def __init__(self, place):
        self._place = place

    def process_element(self, value, ctx):
        at, watermark = ctx.timestamp(), ctx.timer_service().current_watermark()
        SEEN[self._place].append(("record", value, at, watermark))
        if at is not None and at <= watermark:
            yield LATE, value
        elif value.number % 4 == 3:
            yield SIDE, value
        else:
            yield value


class Timers(KeyedProcessFunction):
    """Sets a timer for every record, with `alarms` two, and emits when they fire."""

    def __init__(self, place, alarms=False):
        self._place = place
        self._alarms = alarms

    def process_element(self, value, ctx):
        times = ctx.timer_service()
        self._see("record", value, ctx.timestamp(), times)
        times.register_event_time_timer(value.at + 5)
        if self._alarms:
            # By the place: timers of two functions that are due together have no order.
            due = times.current_processing_time() + 30
            times.register_processing_time_timer(due - due % 10 + self._place)
        yield value

    def on_timer(self, timestamp, ctx):
        times = ctx.timer_service()
        self._see(ctx.time_domain().value, ctx.get_current_key(), timestamp, times)
        if ctx.time_domain().value == "event" and timestamp % 3 == 0:
            times.register_event_time_timer(timestamp + 2)
        yield Record(ctx.get_current_key(), timestamp)

    def _see(self, what, value, timestamp, times):
        now = times.current_processing_time()
        seen = (what, value, timestamp, times.current_watermark(), now)
        SEEN[self._place].append(seen)


class Sum(ProcessWindowFunction):
    def __init__(self, place):
        self._place = place

    def process(self, key, context, elements):
        numbers = tuple(element.number for element in elements)
        SEEN[self._place].append((key, context.window(), numbers, context.current_watermark()))
        yield Record(sum(numbers), context.window().max_timestamp())


class Both(CoProcessFunction):
    """Two streams as they come."""

    def __init__(self, place):
        self._place = place

    def process_element1(self, value, ctx):
        return self._seen("first", value, ctx)

    def process_element2(self, value, ctx):
        return self._seen("second", value, ctx)

    def _seen(self, which, value, ctx):
        watermark = ctx.timer_service().current_watermark()
        SEEN[self._place].append((which, value, ctx.timestamp(), watermark))
        yield value


class BothTimers(KeyedCoProcessFunction):
    """Two streams by their keys, with a timer for every record."""

    def __init__(self, place):
        self._timers = Timers(place)

    def process_element1(self, value, ctx):
        yield from self._timers.process_element(value, ctx)

    def process_element2(self, value, ctx):
        yield from self._timers.process_element(value, ctx)

    def on_timer(self, timestamp, ctx):
        yield from self._timers.on_timer(timestamp, ctx)


RULES = MapStateDescriptor("rules", Types.INT(), Types.INT())


class Broadcast(BroadcastProcessFunction):
    """Numbers the second stream's records, and tells the first one's how many there were."""

    def __init__(self, place):
        self._place = place

    def process_element(self, value, ctx):
        known = len(list(ctx.get_broadcast_state(RULES).keys()))
        SEEN[self._place].append((value, known, ctx.timestamp(), ctx.current_watermark()))
        yield value

    def process_broadcast_element(self, value, ctx):
        ctx.get_broadcast_state(RULES).put(value.number, value.at)
        SEEN[self._place].append(("rule", value, ctx.timestamp(), ctx.current_watermark()))
        yield value


class BroadcastTimers(KeyedBroadcastProcessFunction):
    """The same by key, with a timer for every record of the first stream."""

    def __init__(self, place):
        self._timers, self._unkeyed = Timers(place), Broadcast(place)

    def process_element(self, value, ctx):
        yield from self._timers.process_element(value, ctx)

    def process_broadcast_element(self, value, ctx):
        yield from self._unkeyed.process_broadcast_element(value, ctx)

    def on_timer(self, timestamp, ctx):
        yield from self._timers.on_timer(timestamp, ctx)


class Pair(ProcessJoinFunction):
    def __init__(self, place):
        self._place = place

    def process_element(self, left, right, ctx):
        times = (ctx.get_left_timestamp(), ctx.get_right_timestamp(), ctx.get_timestamp())
        SEEN[self._place].append((left, right, times))
        yield Record(left.number + right.number, max(left.at, right.at))


class Twice(AsyncFunction):
    async def async_invoke(self, value):
        return [value, Record(value.number + 1, value.at)]


class EveryThird(WatermarkGenerator):
    """A watermark behind every third record, in the middle of whatever is under way."""

    def on_event(self, event, event_timestamp, output):
        if event.number % 3 == 0:
            output.emit_watermark(event_timestamp)

    def on_periodic_emit(self, output):
        pass


def key_of(record):
    return record.number % KEYS


def forget(record):
    """A sink for what nobody wants."""


def at_of(record, record_timestamp):
    return record.at


def twice(record):
    yield record
    yield Record(record.number + 1, record.at + 1)


STAMPS = ("punctuated", "periodic", "idle")
PUNCTUATED = WatermarkStrategy.for_generator(EveryThird).with_timestamp_assigner(at_of)
PERIODIC = WatermarkStrategy.for_bounded_out_of_orderness(
    Duration.of_millis(3)
).with_timestamp_assigner(at_of)
IDLE = PERIODIC.with_idleness(Duration.of_millis(150))
ASSIGNERS = {
    "tumbling": TumblingEventTimeWindows.of(Time.milliseconds(10)),
    "sliding": SlidingEventTimeWindows.of(Time.milliseconds(10), Time.milliseconds(5)),
    "session": EventTimeSessionWindows.with_gap(Time.milliseconds(4)),
}


NEED_TIMES = (*ASSIGNERS, "too late", "interval")
"""Stages that refuse records without a timestamp."""


def windowed(stream, kind, place, lateness=0):
    windows = stream.key_by(key_of).window(ASSIGNERS[kind]).side_output_late_data(LATE)
    return windows.allowed_lateness(lateness).process(Sum(place))


STAGES = {
    "watch": lambda stream, place: stream.process(Watch(place)),
    "timers": lambda stream, place: stream.key_by(key_of).process(Timers(place)),
    "alarms": lambda stream, place: stream.key_by(key_of).process(Timers(place, alarms=True)),
    "tumbling": lambda stream, place: windowed(stream, "tumbling", place),
    "sliding": lambda stream, place: windowed(stream, "sliding", place),
    "session": lambda stream, place: windowed(stream, "session", place, 3),
    "map": lambda stream, place: stream.map(lambda r: Record(r.number + 1, r.at)),
    "filter": lambda stream, place: stream.filter(lambda r: r.number % 5 != 4),
    "flat_map": lambda stream, place: stream.flat_map(twice),
    "async": lambda stream, place: AsyncDataStream.ordered_wait(stream, Twice(), Time.seconds(9)),
    "punctuated": lambda stream, place: stream.assign_timestamps_and_watermarks(PUNCTUATED),
    "periodic": lambda stream, place: stream.assign_timestamps_and_watermarks(PERIODIC),
    "idle": lambda stream, place: stream.assign_timestamps_and_watermarks(IDLE),
}


def intervals(stream, other, place):
    joined = stream.key_by(key_of).interval_join(other.key_by(key_of))
    return joined.between(Time.milliseconds(-4), Time.milliseconds(6)).process(Pair(place))


def keyed_both(stream, other, place):
    return stream.key_by(key_of).connect(other.key_by(key_of)).process(BothTimers(place))


def keyed_broadcast(stream, other, place):
    rules = other.broadcast(RULES)
    return stream.key_by(key_of).connect(rules).process(BroadcastTimers(place))


JOINS = {
    "both": lambda stream, other, place: stream.connect(other).process(Both(place)),
    "keyed both": keyed_both,
    "broadcast": lambda stream, other, place: stream.connect(other.broadcast(RULES)).process(
        Broadcast(place)
    ),
    "keyed broadcast": keyed_broadcast,
    "interval": intervals,
    "union": lambda stream, other, place: stream.union(other).map(lambda record: record),
}
"""Stages with a second stream."""
OTHERS = {
    "as it is": lambda other: other,
    "punctuated": lambda other: other.assign_timestamps_and_watermarks(PUNCTUATED),
    "idle": lambda other: other.assign_timestamps_and_watermarks(IDLE),
}
"""How event time goes in a second stream."""
ASIDE = {"late": ("watch", LATE), "side": ("watch", SIDE), "too late": ("tumbling", LATE)}
"""Stages whose side output the program goes on with."""


# --- single cases ---------------------------------------------------------------------------------


class Times(ProcessFunction):
    """What a function sees of event time."""

    def process_element(self, value, ctx):
        yield ctx.timestamp(), ctx.timer_service().current_watermark()


@pytest.mark.parametrize("chained", [True, False])
def test_a_watermark_comes_behind_what_it_makes_a_window_emit(chained):
    def build(stream):
        sums = stream.key_by(key_of).window(ASSIGNERS["tumbling"]).reduce(lambda a, b: a)
        return (sums if chained else sums.disable_chaining()).process(Times())

    with OperatorHarness(build) as harness:
        harness.process(Record(1, 3), timestamp=3)
        harness.process(Record(1, 13), timestamp=13)
        harness.advance_watermark(9)
        harness.end_input()
        assert harness.output == [(9, MIN_WATERMARK), (19, 9)]


@pytest.mark.parametrize("chained", [True, False])
def test_what_a_timer_by_the_clock_emits_has_no_timestamp(chained):
    def build(stream):
        timers = stream.key_by(key_of).process(Timers(1, alarms=True))
        return (timers if chained else timers.disable_chaining()).process(Times())

    with OperatorHarness(build) as harness:
        harness.process(Record(1, 3), timestamp=3)
        harness.advance_processing_time(100)
        assert harness.output == [(3, MIN_WATERMARK), (None, MIN_WATERMARK)]


@pytest.mark.parametrize("chained", [True, False])
def test_without_timestamps_no_function_sees_one(chained):
    with local_environment() as env:
        records = env.from_collection([Record(1, 3)])
        timers = records.key_by(key_of).process(Timers(1))
        stream = timers if chained else timers.disable_chaining()
        seen = list(stream.process(Times()).execute_and_collect())
    # The second one is of a timer that fires when all input is there.
    assert seen == [(None, MIN_WATERMARK), (None, MIN_WATERMARK)]


# --- running one both ways ----------------------------------------------------------------------


def seen(stages, events, chained):
    """All that the functions of a program saw, and what came out of it."""
    SEEN.clear()

    def build(stream, *others):
        others = iter(others)
        for place, stage in enumerate(stages, start=1):
            tag = None
            if isinstance(stage, tuple):
                kind, time = stage
                stream = JOINS[kind](stream, OTHERS[time](next(others)), place)
            else:
                kind, tag = ASIDE.get(stage, (stage, None))
                stream = STAGES[kind](stream, place)
            if not chained:
                stream.disable_chaining()
            if tag is not None:
                stream = stream.get_side_output(tag)
            # A second reader of the same stream, in the chain or not.
            watched = stream.process(Watch(-place))
            if not chained:
                watched.disable_chaining()
            watched.add_sink(forget)
        last = stream.process(Watch(0))
        return last if chained else last.disable_chaining()

    watermark = MIN_WATERMARK
    inputs = 1 + sum(isinstance(stage, tuple) for stage in stages)
    with OperatorHarness(build, inputs=inputs, side_outputs=[LATE, SIDE]) as harness:
        for kind, amount in events:
            if kind == "record":
                input, number, at = amount
                harness.process(Record(number, at), input=1 + input % inputs, timestamp=at)
            elif kind == "watermark":
                watermark = max(0, watermark) + amount
                harness.advance_watermark(watermark)
            else:
                harness.advance_processing_time(amount)
        # One after another: which of two ends comes first is not for a chain to say.
        for feed in harness._feeds[1:]:
            feed.end()
            harness._run()
        harness.end_input()
        sides = {tag.tag_id: harness.side_output(tag) for tag in (LATE, SIDE)}
        return dict(SEEN), harness.output, sides


records = st.tuples(st.integers(0, 3), st.integers(0, 9), st.integers(0, 40))
events = st.one_of(
    st.tuples(st.just("record"), records),
    st.tuples(st.just("watermark"), st.integers(0, 15)),
    st.tuples(st.just("time"), st.integers(1, 300)),
)
joins = st.tuples(st.sampled_from([*JOINS]), st.sampled_from([*OTHERS]))


@st.composite
def programs(draw):
    """Stages, none with need of a timestamp behind an alarm, which emits records without one.

    Where streams meet, event time goes by the clock in one place at most: which of two that go at
    the same moment is seen first is not for a chain to say.
    """
    stages = []
    plain = st.sampled_from([*STAGES, *ASIDE])
    for stage in draw(st.lists(st.one_of(plain, plain, joins), min_size=1, max_size=6)):
        stamped = [n for n, name in enumerate(stages) if name in STAMPS]
        kind = stage[0] if isinstance(stage, tuple) else stage
        if kind in NEED_TIMES and "alarms" in stages[max(stamped, default=0) :]:
            continue
        meet = any(isinstance(each, tuple) for each in [*stages, stage])
        if not meet or sum(map(by_the_clock, [*stages, stage])) <= 1:
            stages.append(stage)
    return stages


def by_the_clock(stage):
    return (stage[1] if isinstance(stage, tuple) else stage) in ("periodic", "idle")


@given(programs(), st.lists(events, max_size=15))
@settings(max_examples=150)
def test_functions_see_the_same_in_a_chain_and_apart(stages, events):
    assert seen(stages, events, chained=True) == seen(stages, events, chained=False)
