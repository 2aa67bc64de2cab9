"""Windows of all kinds, each with what it keeps: accumulators, lists, triggers' and own state.

A number n happens at 10 * n milliseconds, so a window of 200 ms holds twenty numbers. Event time
stands still until the input ends. Numbers of one key come in one split, and so in order.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any

from kept_programs.program import program
from kept_programs.states import SPAN, Average
from penstock.common import Time, Types
from penstock.datastream import (
    DataStream,
    KeyedStream,
    ProcessWindowFunction,
    TimeWindow,
    WindowedStream,
)
from penstock.datastream.state import ListStateDescriptor, ValueStateDescriptor
from penstock.datastream.window import (
    ContinuousEventTimeTrigger,
    CountEvictor,
    CountSlidingWindowAssigner,
    CountTrigger,
    CountTumblingWindowAssigner,
    DeltaEvictor,
    DynamicEventTimeSessionWindows,
    EventTimeSessionWindows,
    EventTimeTrigger,
    GlobalWindow,
    GlobalWindows,
    MergingWindowAssigner,
    ProcessingTimeSessionWindows,
    PurgingTrigger,
    SlidingEventTimeWindows,
    TimeEvictor,
    TumblingEventTimeWindows,
    TumblingProcessingTimeWindows,
    WindowAssigner,
)

SIZE, SLIDE, GAP = 200, 70, 100


def by_four(number: int) -> int:
    return number % 4


def keyed(numbers: DataStream) -> KeyedStream:
    return numbers.key_by(by_four)


def listed(key: Any, window: Any, inputs: Iterable[Any]) -> list[Any]:
    return [(key, named(window), list(inputs))]


def named(window: Any) -> str:
    """The window as it printed when the kept files were written."""
    return "GlobalWindow()" if isinstance(window, GlobalWindow) else repr(window)


def by_key(numbers: range) -> Iterator[tuple[int, list[int]]]:
    for key in range(4):
        yield key, [n for n in numbers if n % 4 == key]


def fixed(seen: list[int], size: int, slide: int) -> Iterator[tuple[TimeWindow, list[int]]]:
    """The windows that begin at a multiple of `slide`, with the numbers in each."""
    for start in range(-(size // slide) * slide, 10 * max(seen) + 1, slide):
        inside = [n for n in seen if start <= 10 * n < start + size]
        if inside:
            yield TimeWindow(start, start + size), inside


def in_windows(size: int, slide: int, result: Callable[..., Any]) -> Callable[[range], Any]:
    """The model of fixed windows: `result(key, window, its numbers)` of each."""

    def model(numbers: range) -> Iterator[Any]:
        for key, seen in by_key(numbers):
            for window, inside in fixed(seen, size, slide):
                yield result(key, window, inside)

    return model


def shown(key: int, window: Any, inside: list[int]) -> tuple[Any, ...]:
    return key, repr(window), inside


def tumbling(size: int = SIZE) -> WindowAssigner[Any, Any]:
    return TumblingEventTimeWindows.of(Time.milliseconds(size))


def sliding() -> WindowAssigner[Any, Any]:
    return SlidingEventTimeWindows.of(Time.milliseconds(SIZE), Time.milliseconds(SLIDE))


# --- fixed windows ----------------------------------------------------------------------------


@program(in_windows(SIZE, SIZE, lambda key, window, inside: sum(inside)))
def tumbling_reduced(numbers: DataStream) -> DataStream:
    return keyed(numbers).window(tumbling()).reduce(lambda a, b: a + b).uid("window")


@program(in_windows(SIZE, SIZE, shown))
def tumbling_listed(numbers: DataStream) -> DataStream:
    return keyed(numbers).window(tumbling()).apply(listed).uid("window")


@program(in_windows(SIZE, SIZE, shown))
def tumbling_with_lateness(numbers: DataStream) -> DataStream:
    windowed = keyed(numbers).window(tumbling()).allowed_lateness(50)
    return windowed.apply(listed).uid("window")


@program(in_windows(SIZE, SIZE, shown), settings={"state.backend.type": "rocksdb"})
def tumbling_with_lateness_on_rocksdb(numbers: DataStream) -> DataStream:
    return tumbling_with_lateness(numbers)


@program(in_windows(SIZE, SLIDE, lambda key, window, inside: sum(inside) / len(inside)))
def sliding_aggregated(numbers: DataStream) -> DataStream:
    return keyed(numbers).window(sliding()).aggregate(Average()).uid("window")


@program(in_windows(SIZE, SLIDE, shown))
def sliding_listed(numbers: DataStream) -> DataStream:
    return keyed(numbers).window(sliding()).apply(listed).uid("window")


@program(
    lambda numbers: [
        (repr(window), sum(inside)) for window, inside in fixed(list(numbers), SIZE, SIZE)
    ]
)
def all_together(numbers: DataStream) -> DataStream:
    windowed = numbers.window_all(tumbling())
    return windowed.apply(lambda window, inputs: [(repr(window), sum(inputs))]).uid("window")


@program(lambda numbers: [(key, sum(seen)) for key, seen in by_key(numbers)], waits_for=4)
def tumbling_by_the_clock(numbers: DataStream) -> DataStream:
    pairs = numbers.map(lambda n: (n % 4, n)).uid("pairs").key_by(lambda pair: pair[0])
    windowed = pairs.window(TumblingProcessingTimeWindows.of(Time.milliseconds(SPAN)))
    return windowed.sum(1).uid("window")


# --- sessions ---------------------------------------------------------------------------------


def stride(number: int) -> bool:
    """Leaves out every second stretch of 13 numbers, so that there are gaps."""
    return number // 13 % 2 == 0


def with_gaps(numbers: DataStream) -> KeyedStream:
    return numbers.filter(stride).uid("stretches").key_by(by_four)


def gap_of(number: int) -> int:
    return GAP + number % 3


def sessions_of(
    numbers: range, gap: Callable[[int], int] = lambda n: GAP
) -> Iterator[tuple[int, TimeWindow, list[int]]]:
    for key, seen in by_key(numbers):
        found: list[tuple[TimeWindow, list[int]]] = []
        for n in filter(stride, seen):
            window = TimeWindow(10 * n, 10 * n + gap(n))
            if found and found[-1][0].end >= window.start:
                last, inside = found.pop()
                found.append((last.cover(window), [*inside, n]))
            else:
                found.append((window, [n]))
        for window, inside in found:
            yield key, window, inside


def in_sessions(numbers: range) -> Iterator[Any]:
    for session in sessions_of(numbers):
        yield shown(*session)


def sessions() -> WindowAssigner[Any, Any]:
    return EventTimeSessionWindows.with_gap(Time.milliseconds(GAP))


@program(in_sessions)
def sessions_that_fire_once(numbers: DataStream) -> DataStream:
    return with_gaps(numbers).window(sessions()).apply(listed).uid("window")


@program(in_sessions)
def sessions_with_lateness(numbers: DataStream) -> DataStream:
    windowed = with_gaps(numbers).window(sessions()).allowed_lateness(50)
    return windowed.apply(listed).uid("window")


@program(in_sessions, settings={"state.backend.type": "rocksdb"})
def sessions_with_lateness_on_rocksdb(numbers: DataStream) -> DataStream:
    return sessions_with_lateness(numbers)


@program(lambda numbers: [shown(*session) for session in sessions_of(numbers, gap_of)])
def sessions_of_dynamic_gaps(numbers: DataStream) -> DataStream:
    windowed = with_gaps(numbers).window(DynamicEventTimeSessionWindows.with_dynamic_gap(gap_of))
    return windowed.apply(listed).uid("window")


def purged(numbers: range) -> Iterator[Any]:
    for key, _, inside in sessions_of(numbers):
        for place in range(2, len(inside), 3):
            yield key, inside[place - 2 : place + 1]


@program(purged, before=64)
def sessions_that_are_purged(numbers: DataStream) -> DataStream:
    windowed = with_gaps(numbers).window(sessions()).trigger(PurgingTrigger.of(CountTrigger.of(3)))
    return windowed.apply(lambda key, window, inputs: [(key, list(inputs))]).uid("window")


@program(lambda numbers: [(key, sum(seen)) for key, seen in by_key(numbers)], waits_for=4)
def sessions_by_the_clock(numbers: DataStream) -> DataStream:
    pairs = numbers.map(lambda n: (n % 4, n)).uid("pairs").key_by(lambda pair: pair[0])
    windowed = pairs.window(ProcessingTimeSessionWindows.with_gap(Time.milliseconds(SPAN)))
    return windowed.sum(1).uid("window")


# --- counted and global windows ---------------------------------------------------------------


def full(numbers: range, size: int, slide: int) -> Iterator[Any]:
    for key, seen in by_key(numbers):
        for start in range(0, len(seen) - size + 1, slide):
            yield key, f"CountWindow(id={start // slide})", seen[start : start + size]


@program(lambda numbers: full(numbers, 5, 5))
def counted(numbers: DataStream) -> DataStream:
    windowed = keyed(numbers).window(CountTumblingWindowAssigner.of(5))
    return windowed.apply(listed).uid("window")


@program(lambda numbers: full(numbers, 5, 2))
def counted_sliding(numbers: DataStream) -> DataStream:
    windowed = keyed(numbers).window(CountSlidingWindowAssigner.of(5, 2))
    return windowed.apply(listed).uid("window")


@program(lambda numbers: full(numbers, 5, 2), settings={"state.backend.type": "rocksdb"})
def counted_sliding_on_rocksdb(numbers: DataStream) -> DataStream:
    return counted_sliding(numbers)


def last_of_every(count: int, kept: Callable[[list[int]], list[int]]) -> Callable[[range], Any]:
    """The model of a global window that fires for every so many numbers: what is `kept` then."""

    def model(numbers: range) -> Iterator[Any]:
        for key, seen in by_key(numbers):
            for end in range(count, len(seen) + 1, count):
                yield key, "GlobalWindow()", kept(seen[:end])

    return model


def everything(numbers: DataStream, count: int) -> WindowedStream:
    return keyed(numbers).window(GlobalWindows.create()).trigger(CountTrigger.of(count))


@program(last_of_every(3, lambda seen: seen[-4:]))
def evicted_by_count(numbers: DataStream) -> DataStream:
    return everything(numbers, 3).evictor(CountEvictor.of(4)).apply(listed).uid("window")


@program(last_of_every(3, lambda seen: seen[-4:]), settings={"state.backend.type": "rocksdb"})
def evicted_by_count_on_rocksdb(numbers: DataStream) -> DataStream:
    return evicted_by_count(numbers)


@program(last_of_every(4, lambda seen: [n for n in seen if 10 * n > 10 * seen[-1] - 150]))
def evicted_by_time(numbers: DataStream) -> DataStream:
    evictor = TimeEvictor.of(Time.milliseconds(150))
    return everything(numbers, 4).evictor(evictor).apply(listed).uid("window")


@program(last_of_every(4, lambda seen: [n for n in seen if seen[-1] - n < 13]))
def evicted_by_difference(numbers: DataStream) -> DataStream:
    evictor = DeltaEvictor.of(13, lambda one, last: last - one)
    return everything(numbers, 4).evictor(evictor).apply(listed).uid("window")


def purged_globally(numbers: range) -> Iterator[Any]:
    for key, seen in by_key(numbers):
        for end in range(3, len(seen) + 1, 3):
            yield key, "GlobalWindow()", seen[end - 3 : end]


@program(purged_globally)
def purged_by_count(numbers: DataStream) -> DataStream:
    windowed = keyed(numbers).window(GlobalWindows.create())
    return windowed.trigger(PurgingTrigger.of(CountTrigger.of(3))).apply(listed).uid("window")


# --- triggers and functions with state --------------------------------------------------------


@program(in_windows(SIZE, SIZE, shown))
def purging_at_the_end(numbers: DataStream) -> DataStream:
    windowed = keyed(numbers).window(tumbling()).allowed_lateness(50)
    return windowed.trigger(PurgingTrigger.of(EventTimeTrigger.create())).apply(listed).uid("w")


def continuously(numbers: range) -> Iterator[Any]:
    for key, seen in by_key(numbers):
        for window, inside in fixed(seen, SIZE, SIZE):
            begins = 10 * inside[0] - 10 * inside[0] % 70 + 70
            fires = len(range(begins, window.end - 1, 70)) + 1
            yield from [(key, repr(window), inside)] * fires


@program(continuously)
def firing_continuously(numbers: DataStream) -> DataStream:
    trigger = ContinuousEventTimeTrigger.of(Time.milliseconds(70))
    return keyed(numbers).window(tumbling()).trigger(trigger).apply(listed).uid("window")


class Firings(ProcessWindowFunction[Any, Any, Any, Any]):
    """Counts its firings: those of a window, and those of all windows of the key."""

    def process(
        self, key: Any, context: ProcessWindowFunction.Context[Any], elements: Iterable[Any]
    ) -> Iterable[Any]:
        of_window = context.window_state().get_state(ValueStateDescriptor("fired", Types.LONG()))
        of_window.update((of_window.value() or 0) + 1)
        windows = ListStateDescriptor("windows", Types.PICKLED_BYTE_ARRAY())
        of_key = context.global_state().get_list_state(windows)
        of_key.add(context.window())
        yield key, of_window.value(), list(of_key.get() or ())


def firings(numbers: range) -> Iterator[Any]:
    for key, seen in by_key(numbers):
        fired: list[TimeWindow] = []
        for end in range(1, len(seen) + 1):
            start = 10 * seen[end - 1] // 500 * 500
            inside = [n for n in seen[:end] if 10 * n >= start]
            if len(inside) % 3 == 0:
                fired.append(TimeWindow(start, start + 500))
                yield key, fired.count(fired[-1]), list(fired)


@program(firings)
def functions_with_state(numbers: DataStream) -> DataStream:
    windowed = keyed(numbers).window(tumbling(500)).trigger(CountTrigger.of(3))
    return windowed.process(Firings()).uid("window")


class Batch:
    """A window of the user's own: `kept_programs.windows.Batch` is pickled into kept files."""

    def __init__(self, first: int, last: int) -> None:
        self.first = first
        self.last = last

    def max_timestamp(self) -> int:
        return 10 * self.last

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Batch) and vars(self) == vars(other)

    def __hash__(self) -> int:
        return self.first

    def __repr__(self) -> str:
        return f"Batch({self.first}, {self.last})"


class Neighbours(MergingWindowAssigner[Any, Any]):
    """Windows of the user's own that merge when numbers of a key follow one another."""

    def assign_windows(self, element: int, timestamp: int, context: Any) -> list[Batch]:
        return [Batch(element, element)]

    def merge_windows(self, windows: Iterable[Batch], callback: Any) -> None:
        group: list[Batch] = []
        for window in [*sorted(windows, key=lambda window: window.first), None]:
            if group and (window is None or window.first - group[-1].last > 4):
                if len(group) > 1:
                    callback.merge(group, Batch(group[0].first, group[-1].last))
                group = []
            if window is not None:
                group.append(window)

    def get_default_trigger(self, env: Any) -> Any:
        return EventTimeTrigger.create()

    def get_window_serializer(self) -> Any:
        return None

    def is_event_time(self) -> bool:
        return True


def neighbours(numbers: range) -> Iterator[Any]:
    for key, seen in by_key(numbers):
        runs: list[list[int]] = []
        for n in filter(stride, seen):
            if runs and n - runs[-1][-1] <= 4:
                runs[-1].append(n)
            else:
                runs.append([n])
        for run in runs:
            yield key, f"Batch({run[0]}, {run[-1]})", run


@program(neighbours)
def windows_of_the_users_own(numbers: DataStream) -> DataStream:
    return with_gaps(numbers).window(Neighbours()).apply(listed).uid("window")
