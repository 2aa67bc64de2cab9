"""Window operators against a model: a plain reading of what the windows of a stream must emit.

A case is a list of moves: records with timestamps, watermarks, and restarts from a checkpoint. The
model keeps every record with the windows that it belongs to and decides by looking at all of them,
without timers, state or operators of any kind. Results must agree as multisets after every move,
so that a window that fires twice, too early or too late is seen; and they must come in the order
of their timestamps where time passes. There are more cases with `--all`, and ten times as many with
`--long`.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from penstock.common import Time
from penstock.common.output_tag import OutputTag
from penstock.datastream import AggregateFunction, ProcessWindowFunction
from penstock.datastream.window import (
    CountTrigger,
    EventTimeSessionWindows,
    EventTimeTrigger,
    PurgingTrigger,
    SlidingEventTimeWindows,
    TumblingEventTimeWindows,
)
from penstock.testing.window_rig import WindowRig

MIN, MAX = -(1 << 63), (1 << 63) - 1


# --- a case ---------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Shape:
    """The windows of a case. `slide` is 0 for sessions, whose gap is `size`."""

    size: int
    slide: int
    offset: int
    lateness: int
    trigger: str
    function: str
    side_output: bool
    dynamic: bool
    """Whether the gap of a session comes from the record."""

    @property
    def sessions(self):
        return self.slide == 0

    def windows(self, timestamp, value):
        """Start and end of the windows of a record, before any are merged."""
        if self.sessions:
            gap = 1 + value % self.size if self.dynamic else self.size
            return [(timestamp, timestamp + gap)]
        # By trying all that could be, so that no formula is shared with the assigner.
        around = range(timestamp - self.size - self.slide, timestamp + 1)
        return [
            (start, start + self.size)
            for start in around
            if (start - self.offset) % self.slide == 0 and start <= timestamp < start + self.size
        ]


@st.composite
def shapes(draw):
    kind = draw(st.sampled_from(["tumbling", "sliding", "session"]))
    slide = draw(st.integers(1, 8))
    size = slide
    if kind == "sliding":
        size = draw(st.integers(slide, 20))
    elif kind == "session":
        size, slide = draw(st.integers(1, 12)), 0
    offset = 0 if kind == "session" else draw(st.integers(1 - slide, slide - 1))
    # Most windows are plain, and plain ones have operators of their own.
    plain = draw(st.sampled_from([True, True, False]))
    triggers = st.sampled_from(["default", "purging", "count", "purging count"])
    return Shape(
        size,
        slide,
        offset,
        0 if plain else draw(st.sampled_from([0, 3, 10])),
        "default" if plain else draw(triggers),
        draw(st.sampled_from(["sum", "reduce", "aggregate", "both", "process"])),
        draw(st.booleans()),
        draw(st.booleans()),
    )


records = st.tuples(
    st.just("record"), st.sampled_from("ab"), st.integers(-10, 10), st.integers(1, 1000)
)
moves = st.lists(
    records | records | st.tuples(st.just("watermark"), st.integers(0, 6)) | st.just(("restart",)),
    min_size=1,
    max_size=30,
)


# --- the model ------------------------------------------------------------------------------------


@dataclass
class Held:
    """A window of the model: its values since it was last purged, and in all how many of them."""

    values: list = field(default_factory=list)
    counted: int = 0
    fired_at_end: bool = False


class Model:
    """What must have been emitted."""

    def __init__(self, shape):
        self.shape = shape
        self.watermark = MIN
        self.windows = {}
        self.results = []
        self.late = []

    def record(self, key, timestamp, value):
        shape, reached = self.shape, []
        for window in shape.windows(timestamp, value):
            place = self.join(key, window) if shape.sessions else (key, window)
            if place[1][1] - 1 + shape.lateness <= self.watermark:
                continue
            reached.append(place)
        for place in reached:
            held = self.windows.setdefault(place, Held())
            held.values.append(value)
            held.counted += 1
            self.ask(place, held)
        if not reached:
            self.late.append((key, timestamp, value))

    def join(self, key, window):
        """Where a record's session ends up among those that are there."""
        start, end = window
        members = []
        while True:
            more = [
                place
                for place in self.windows
                if place[0] == key and place not in members
                if place[1][0] <= end and place[1][1] >= start
            ]
            if not more:
                break
            members += more
            start = min([start, *(place[1][0] for place in members)])
            end = max([end, *(place[1][1] for place in members)])
        joined = Held()
        for place in sorted(members):
            held = self.windows.pop(place)
            joined.values += held.values
            joined.counted += held.counted
        if members:
            self.windows[key, (start, end)] = joined
        return key, (start, end)

    def ask(self, place, held):
        """A record was added."""
        if self.shape.trigger in ("count", "purging count"):
            if held.counted >= 3:
                held.counted = 0
                self.fire(place, held)
        elif place[1][1] - 1 <= self.watermark:
            self.fire(place, held)

    def advance(self, watermark):
        before, self.watermark = self.watermark, watermark
        for place, held in sorted(self.windows.items(), key=lambda item: item[0][1][1]):
            last = place[1][1] - 1
            by_time = self.shape.trigger in ("default", "purging")
            if by_time and before < last <= watermark:
                self.fire(place, held)
            if last + self.shape.lateness <= watermark:
                del self.windows[place]

    def fire(self, place, held):
        if held.values:
            (key, (start, end)) = place
            self.results.append((key, start, end, sum(held.values), len(held.values)))
        if "purging" in self.shape.trigger:
            held.values = []


# --- the engine -----------------------------------------------------------------------------------


def key_of(value):
    return value[0]


def add(one, other):
    return (one[0], one[1] + other[1])


class Add(AggregateFunction):
    def create_accumulator(self):
        return (None, 0)

    def add(self, value, accumulator):
        return (value[0], accumulator[1] + value[1])

    def get_result(self, accumulator):
        return accumulator

    def merge(self, acc_a, acc_b):
        return (acc_a[0] or acc_b[0], acc_a[1] + acc_b[1])


class Describe(ProcessWindowFunction):
    """Says all there is to say of a window."""

    def process(self, key, context, elements):
        window, values = context.window(), [value for _, value in elements]
        yield key, window.start, window.end, sum(values), len(values)


LATE = OutputTag("late")


def build(shape):
    def windowed(stream):
        if shape.sessions and shape.dynamic:
            size = shape.size
            assigner = EventTimeSessionWindows.with_dynamic_gap(lambda value: 1 + value[1] % size)
        elif shape.sessions:
            assigner = EventTimeSessionWindows.with_gap(Time.milliseconds(shape.size))
        elif shape.slide == shape.size:
            assigner = TumblingEventTimeWindows.of(shape.size, shape.offset)
        else:
            assigner = SlidingEventTimeWindows.of(shape.size, shape.slide, shape.offset)
        windows = stream.key_by(key_of).window(assigner).allowed_lateness(shape.lateness)
        triggers = {
            "purging": PurgingTrigger.of(EventTimeTrigger.create()),
            "count": CountTrigger.of(3),
            "purging count": PurgingTrigger.of(CountTrigger.of(3)),
        }
        if shape.trigger in triggers:
            windows.trigger(triggers[shape.trigger])
        if shape.side_output:
            windows.side_output_late_data(LATE)
        match shape.function:
            case "sum":
                return windows.sum(1)
            case "reduce":
                return windows.reduce(add)
            case "aggregate":
                return windows.aggregate(Add())
            case "both":
                return windows.aggregate(Add(), Describe())
            case "process":
                return windows.process(Describe())

    return windowed


def comparable(shape, expected):
    """Of what the model says, what the function can tell."""
    if shape.function == "process":
        return expected
    if shape.function == "both":
        return [(key, start, end, total, 1) for key, start, end, total, _ in expected]
    return [(key, total) for key, _, _, total, _ in expected]


def check(shape, script):
    rig, model = WindowRig(build(shape)), Model(shape)
    for move in [*script, ("watermark", MAX)]:
        emitted = len(rig.output)
        match move:
            case ("record", key, ahead, value):
                # Around the watermark, where it matters.
                timestamp = max(model.watermark, 0) + ahead
                rig.process((key, value), timestamp)
                model.record(key, timestamp, value)
            case ("watermark", step):
                watermark = MAX if step == MAX else max(model.watermark, 0) + step
                rig.advance_watermark(watermark)
                model.advance(watermark)
                times = [timestamp for _, _, timestamp in rig.output[emitted:]]
                assert times == sorted(times), f"out of order: {times}"
            case ("restart",):
                rig.restart()
        results = [value for tag, value, _ in rig.output if tag is None]
        assert Counter(results) == Counter(comparable(shape, model.results))
        diverted = [(*value, at) for tag, value, at in rig.output if tag == "late"]
        late = [(key, value, timestamp) for key, timestamp, value in model.late]
        assert diverted == (late if shape.side_output else [])
    if not shape.side_output and not any(move[0] == "restart" for move in script):
        assert rig.dropped() == len(model.late)
    assert rig.entries() == 0, "a window that is gone has left something behind"


cases = settings(
    max_examples=300, deadline=None, suppress_health_check=list(HealthCheck), database=None
)


@cases
@given(shapes(), moves)
def test_windows_emit_what_the_model_says(shape, script):
    check(shape, script)


@pytest.mark.full
@settings(cases, max_examples=2200)
@given(shapes(), moves)
def test_windows_emit_what_the_model_says_in_many_cases(shape, script):
    check(shape, script)


@pytest.mark.long
@settings(cases, max_examples=22_000)
@given(shapes(), moves)
def test_windows_emit_what_the_model_says_at_length(shape, script):
    check(shape, script)
