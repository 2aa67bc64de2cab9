"""Programs by event time whose answer a plain loop knows, for the simulator and for clusters.

A case is a list of timestamped events with bounded disorder, a kind of window and a parallelism;
its answer does not depend on the order in which records of different keys meet, nor on failures.
Where records come too late a watermark follows every record, on one way to every window: so which
ones are late is known too.
"""

from __future__ import annotations

import itertools
from collections import Counter
from dataclasses import dataclass
from typing import Any

from penstock.common import Duration, Time, WatermarkStrategy
from penstock.common.watermark_strategy import WatermarkGenerator, WatermarkOutput
from penstock.datastream import (
    DataStream,
    KeyedProcessFunction,
    OutputTag,
    StreamExecutionEnvironment,
)
from penstock.datastream.connectors.data_generator import DataGeneratorSource
from penstock.datastream.functions import CoGroupFunction
from penstock.datastream.window import (
    CountEvictor,
    EventTimeSessionWindows,
    SlidingEventTimeWindows,
    TumblingEventTimeWindows,
)
from penstock.testing.choices import Choices

EVENTS = "events"
"""The name of the source of a case."""
_KEYS = "abcde"
KINDS = (
    *("tumbling", "sliding", "session", "timer", "join", "window join", "co-group"),
    *("late", "lateness", "evictor"),
)
"""What a case may be about."""
_ONE_WAY = ("late", "lateness", "evictor")
"""Where the order of a key's records counts: they go from the source straight to the window."""
_KEPT = 2
"""How many records of a window an evictor leaves."""
_LATE = OutputTag("late")


class _Bounds:
    """Adds to what a window holds when it began and ended, by a window function's rules."""

    def __call__(self, key: Any, window: Any, inputs: Any) -> Any:
        return [(key, window.start, window.end, sum(value[2] for value in inputs))]


class _Later(KeyedProcessFunction):
    """A timer after every record; what fires is the record's time and the key."""

    def process_element(self, value: Any, ctx: Any) -> Any:
        ctx.timer_service().register_event_time_timer(ctx.timestamp() + 25)

    def on_timer(self, timestamp: int, ctx: Any) -> Any:
        yield ctx.get_current_key(), timestamp


class AtOnce(WatermarkGenerator):
    """Nothing may be out of order."""

    def on_event(self, value: Any, timestamp: int, output: WatermarkOutput) -> None:
        output.emit_watermark(timestamp)

    def on_periodic_emit(self, output: WatermarkOutput) -> None:
        """All is said with the records."""


class _Numbers(CoGroupFunction):
    """The numbers of both sides, in order."""

    def co_group(self, first: Any, second: Any) -> Any:
        yield tuple(sorted(v[2] for v in first)), tuple(sorted(v[2] for v in second))


@dataclass(frozen=True)
class EventCase:
    """One program with its input and its answer."""

    kind: str
    parallelism: int
    disorder: int
    size: int
    slide: int
    events: tuple[tuple[str, int, int], ...]
    """Key, timestamp and number, in the order in which they come."""

    @staticmethod
    def random(seed: int) -> EventCase:
        """The case of a seed."""
        rng = Choices(seed)("event case")
        disorder = rng.choice((0, 3, 20))
        events = []
        now = 1_000
        for number in range(rng.randrange(1, 70)):
            now += rng.choice((0, 1, 2, 5, 5, 40))
            events.append((rng.choice(_KEYS), now - rng.randint(0, disorder), number))
        slide = rng.choice((5, 10))
        kind, parallelism = rng.choice(KINDS), rng.randint(1, 3)
        size = slide * rng.randint(1, 4)
        return EventCase(kind, parallelism, disorder, size, slide, tuple(events))

    def build(self, env: StreamExecutionEnvironment, rate: float = 500) -> DataStream:
        """The program; event time moves while it runs, since records come at a rate."""
        events = self.events
        env.set_parallelism(self.parallelism)
        strategy = self._strategy().with_timestamp_assigner(lambda value, _: value[1])
        source = DataGeneratorSource(lambda n: events[n], len(events), rate)
        # One reader: two would each see a part, and the slower one decide over lateness.
        stream = env.from_source(source, strategy, EVENTS).set_parallelism(1)
        if self.kind in _ONE_WAY:
            return self._one_way(stream)
        keyed = stream.rebalance().map(lambda value: value).key_by(lambda value: value[0])
        if self.kind == "timer":
            return keyed.process(_Later())
        if self.kind == "join":
            even = stream.filter(lambda value: value[2] % 2 == 0).key_by(lambda value: value[0])
            bounds = Time.milliseconds(-self.slide), Time.milliseconds(self.size)
            joined = even.interval_join(keyed).between(*bounds)
            return joined.process(lambda left, right: (left[2], right[2]))
        if self.kind in ("window join", "co-group"):
            return self._windowed_pairs(stream)
        return keyed.window(self._assigner()).apply(_Bounds())

    def _one_way(self, stream: DataStream) -> DataStream:
        windows = stream.key_by(lambda value: value[0]).window(self._assigner())
        if self.kind == "evictor":
            evicted: DataStream = windows.evictor(CountEvictor.of(_KEPT)).apply(_Bounds())
            return evicted
        if self.kind == "lateness":
            windows = windows.allowed_lateness(self.slide)
        summed = windows.side_output_late_data(_LATE).apply(_Bounds())
        return summed.union(summed.get_side_output(_LATE))

    def _strategy(self) -> WatermarkStrategy:
        if self.kind in ("late", "lateness"):
            return WatermarkStrategy.for_generator(AtOnce)
        # A session that ends where a record is may have fired when another record of that time
        # came: one more millisecond, and the answer does not depend on when watermarks are made.
        bound = self.disorder + (self.kind == "session")
        return WatermarkStrategy.for_bounded_out_of_orderness(Duration.of_millis(bound))

    def _windowed_pairs(self, stream: DataStream) -> DataStream:
        even = stream.filter(lambda value: value[2] % 2 == 0)
        size = Time.milliseconds(self.size)
        if self.kind == "window join":
            both = even.join(stream).where(lambda v: v[0]).equal_to(lambda v: v[0])
            windows = both.window(TumblingEventTimeWindows.of(size))
            joined: DataStream = windows.apply(lambda left, right: (left[2], right[2]))
            return joined
        groups = even.co_group(stream).where(lambda v: v[0]).equal_to(lambda v: v[0])
        grouped: DataStream = groups.window(TumblingEventTimeWindows.of(size)).apply(_Numbers())
        return grouped

    def _assigner(self) -> Any:
        size, slide = Time.milliseconds(self.size), Time.milliseconds(self.slide)
        if self.kind in ("tumbling", *_ONE_WAY):
            return TumblingEventTimeWindows.of(size)
        if self.kind == "sliding":
            return SlidingEventTimeWindows.of(size, slide)
        return EventTimeSessionWindows.with_gap(size)

    def answer(self) -> Counter[Any]:
        """What must come out, as a multiset."""
        if self.kind == "co-group":
            groups = {(key, at // self.size) for key, at, _ in self.events}
            return Counter(self._numbers(group) for group in groups)
        if self.kind == "timer":
            return Counter({(key, at + 25): 1 for key, at, _ in self.events})
        if self.kind in ("join", "window join"):
            pairs = itertools.product(self.events, self.events)
            return Counter((left[2], right[2]) for left, right in pairs if self._meet(left, right))
        if self.kind == "lateness":
            return self._with_lateness()
        if self.kind == "evictor":
            return self._evicted()
        sums: dict[tuple[str, int, int], int] = {}
        late = self._late() if self.kind == "late" else []
        parts = self._sessions() if self.kind == "session" else self._fixed(late)
        for key, start, end, number in parts:
            sums[key, start, end] = sums.get((key, start, end), 0) + number
        windows = Counter((*window, total) for window, total in sums.items())
        return windows + Counter(late)

    def _late(self) -> list[tuple[str, int, int]]:
        """The events whose window had passed when they came."""
        found, watermark = [], 0
        for event in self.events:
            end = event[1] - event[1] % self.size + self.size
            if end - 1 <= watermark:
                found.append(event)
            watermark = max(watermark, event[1])
        return found

    def _with_lateness(self) -> Counter[Any]:
        """A window fires when its time has come, and again for each record within the lateness."""
        found: Counter[Any] = Counter()
        sums: dict[tuple[str, int, int], int] = {}
        watermark = 0
        for key, at, number in (*self.events, ("", 1 << 62, 0)):
            start = at - at % self.size
            window = (key, start, start + self.size)
            last = start + self.size - 1
            if last + self.slide <= watermark:
                found[key, at, number] += 1
            else:
                sums[window] = sums.get(window, 0) + number
                found[(*window, sums[window])] += last <= watermark
            passed = (each for each in sums if each[0] and watermark < each[2] - 1 <= at)
            found.update((*each, sums[each]) for each in passed)
            watermark = max(watermark, at)
        return +found

    def _evicted(self) -> Counter[Any]:
        """The last records of every window, in the order in which they came."""
        windows: dict[tuple[str, int, int], list[int]] = {}
        for key, start, end, number in self._fixed([]):
            windows.setdefault((key, start, end), []).append(number)
        return Counter((*window, sum(numbers[-_KEPT:])) for window, numbers in windows.items())

    def _meet(self, left: tuple[str, int, int], right: tuple[str, int, int]) -> bool:
        if self.kind == "window join":
            close = left[1] // self.size == right[1] // self.size
        else:
            close = -self.slide <= right[1] - left[1] <= self.size
        return left[0] == right[0] and left[2] % 2 == 0 and close

    def _numbers(self, window: tuple[str, int]) -> tuple[tuple[int, ...], tuple[int, ...]]:
        """What a co-group sees of a window: the even ones, and all."""
        all_ = [n for key, at, n in self.events if (key, at // self.size) == window]
        return tuple(sorted(n for n in all_ if n % 2 == 0)), tuple(sorted(all_))

    def _fixed(self, late: list[tuple[str, int, int]]) -> list[tuple[str, int, int, int]]:
        slide = self.slide if self.kind == "sliding" else self.size
        found = []
        for key, at, number in [event for event in self.events if event not in late]:
            start = at - at % slide
            while start > at - self.size:
                found.append((key, start, start + self.size, number))
                start -= slide
        return found

    def _sessions(self) -> list[tuple[str, int, int, int]]:
        found: list[tuple[str, int, int, int]] = []
        for key in _KEYS:
            mine = sorted((at, number) for k, at, number in self.events if k == key)
            session: list[tuple[int, int]] = []
            for at, number in [*mine, (1 << 62, 0)]:
                # Windows that only touch are one session: the end of one is the start of the next.
                if session and at > session[-1][0] + self.size:
                    start, end = session[0][0], session[-1][0] + self.size
                    found.extend((key, start, end, each) for _, each in session)
                    session = []
                session.append((at, number))
        return found
