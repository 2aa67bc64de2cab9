"""Evictors: what a window function does not see, and what a window does not keep."""

from __future__ import annotations

import operator

import pytest

from penstock.common import Time
from penstock.datastream import DataStream
from penstock.datastream.window import (
    CountEvictor,
    CountTrigger,
    DeltaEvictor,
    EventTimeSessionWindows,
    Evictor,
    GlobalWindows,
    TimeEvictor,
    TumblingEventTimeWindows,
)
from penstock.errors import ProgramError
from penstock.testing.window_rig import WindowRig


def everything(value):
    return "all"


def rig_of(assigner, evictor, trigger=None, finish=None):
    def build(stream: DataStream) -> DataStream:
        windowed = stream.key_by(everything).window(assigner).evictor(evictor)
        if trigger is not None:
            windowed.trigger(trigger)
        return (
            windowed.apply(lambda key, window, inputs: [list(inputs)])
            if not finish
            else (finish(windowed))
        )

    return WindowRig(build)


def test_the_last_records_are_kept():
    rig = rig_of(GlobalWindows.create(), CountEvictor.of(3), CountTrigger.of(2))
    for value in range(6):
        rig.process(value)
    assert rig.take() == [[0, 1], [1, 2, 3], [3, 4, 5]]


def test_evicted_after_the_function_has_seen_them():
    rig = rig_of(GlobalWindows.create(), CountEvictor.of(1, True), CountTrigger.of(2))
    for value in range(6):
        rig.process(value)
    assert rig.take() == [[0, 1], [1, 2, 3], [3, 4, 5]]


def test_the_newest_time_is_kept():
    rig = rig_of(TumblingEventTimeWindows.of(100), TimeEvictor.of(Time.milliseconds(10)))
    for timestamp in (1, 50, 45, 40, 41):
        rig.process(timestamp, timestamp)
    rig.advance_watermark(99)
    assert rig.take() == [[50, 45, 41]]
    assert rig.entries() == 0


def test_without_timestamps_nothing_has_an_age():
    rig = rig_of(GlobalWindows.create(), TimeEvictor.of(10), CountTrigger.of(2))
    rig.process(1)
    rig.process(2)
    assert rig.take() == [[1, 2]]


def test_what_differs_too_much_from_the_last_goes():
    evictor = DeltaEvictor.of(5, lambda one, last: abs(one - last))
    rig = rig_of(TumblingEventTimeWindows.of(100), evictor)
    for value in (1, 20, 16, 15):
        rig.process(value, value)
    rig.advance_watermark(99)
    assert rig.take() == [[16, 15]]


def test_reductions_see_what_is_left():
    def finish(windowed):
        return windowed.reduce(operator.add)

    rig = rig_of(GlobalWindows.create(), CountEvictor.of(2), CountTrigger.of(3), finish)
    for value in (1, 2, 3):
        rig.process(value)
    assert rig.take() == [5]


def test_sessions_can_have_an_evictor():
    rig = rig_of(EventTimeSessionWindows.with_gap(10), CountEvictor.of(2))
    for timestamp in (0, 18, 9):
        rig.process(timestamp, timestamp)
    rig.restart()
    rig.advance_watermark(100)
    assert rig.take() == [[18, 9]]
    assert rig.entries() == 0


@pytest.mark.parametrize("finish", [None, lambda windowed: windowed.reduce(operator.add)])
def test_an_evictor_of_ones_own_may_leave_nothing(finish):
    class Odd(Evictor):
        def evict_before(self, elements, size, window, evictor_context):
            assert size == len(elements) and evictor_context.get_current_watermark() > 0
            elements[:] = [element for element in elements if element.value % 2]

        def evict_after(self, elements, size, window, evictor_context):
            elements.clear()

    rig = rig_of(TumblingEventTimeWindows.of(10), Odd(), finish=finish)
    for value in (1, 2, 3, 14):
        rig.process(value, value)
    rig.advance_watermark(100)
    assert rig.take() == [[1, 3] if finish is None else 4]
    assert rig.entries() == 0


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: CountEvictor.of(0), "CountEvictor: the count"),
        (lambda: TimeEvictor.of(Time.seconds(0)), "TimeEvictor: the window size"),
        (lambda: DeltaEvictor.of(1, "abs"), "DeltaEvictor needs a function"),
    ],
)
def test_bad_evictors_are_refused(make, message):
    with pytest.raises(ProgramError, match=message):
        make()
