"""Programs that ask a service about every record, which may be slow, silent, or fail for a while.

How often the service is asked depends on failures; what comes out does not. Every record is counted
once, in its order where the calls are ordered, and in its window where windows follow. A record
that the service is silent about has the answer of its timeout; one that is answered slowly may.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from dataclasses import dataclass
from typing import Any

from penstock.common import Time, WatermarkStrategy
from penstock.common.typeinfo import Types
from penstock.datastream import (
    AsyncDataStream,
    AsyncFunction,
    AsyncRetryStrategy,
    DataStream,
    KeyedProcessFunction,
    StreamExecutionEnvironment,
)
from penstock.datastream.state import ValueStateDescriptor
from penstock.datastream.window import TumblingEventTimeWindows
from penstock.testing.choices import Choices
from penstock.testing.clock_programs import RATE, Event, in_order, random_events
from penstock.testing.event_programs import AtOnce
from penstock.testing.stages import FailOnce

ANSWERED, SILENT = "answered", "silent"
_MOST_TRIES = 3
_APART_MS = 1000 // RATE
_WINDOW_MS = 10


@dataclass(frozen=True)
class Behaviour:
    """What the service does when it is asked about a record."""

    takes_ms: int
    """How long it takes to answer; -1: it is silent."""
    failures: int
    """How often it fails before it answers."""
    breaks: bool = False
    """The first call of a run fails in a way that is not worth another try."""


@dataclass(frozen=True)
class CallCase:
    """One program with its input and its oracle."""

    ordered: bool
    windowed: bool
    parallelism: int
    capacity: int
    timeout_ms: int
    events: tuple[Event, ...]
    behaviours: tuple[Behaviour, ...]
    run: object

    @staticmethod
    def random(seed: int) -> CallCase:
        """The case of a seed."""
        choices = Choices(seed)
        rng = choices("call case")
        ordered, windowed = rng.random() < 0.5, rng.random() < 0.3
        parallelism, capacity = rng.randint(1, 3), rng.choice((1, 2, 3, 5, 100))
        timeout_ms = rng.choice((20, 60, 200))
        events = random_events(choices)
        silent = rng.choice((0.0, 0.03, 0.1))
        behaviours = [
            Behaviour(
                -1 if rng.random() < silent else rng.choice((0, 0, 1, 2, 5, 15)),
                rng.choice((0, 0, 0, 0, 1, _MOST_TRIES)),
                rng.random() < 0.02,
            )
            for _ in events
        ]
        return CallCase(
            *(ordered, windowed, parallelism, capacity, timeout_ms),
            *(events, tuple(behaviours), seed),
        )

    @property
    def kind(self) -> str:
        """What it is about."""
        calls = "ordered calls" if self.ordered else "unordered calls"
        return f"{calls} before windows" if self.windowed else calls

    def build(self, env: StreamExecutionEnvironment) -> DataStream:
        """The program."""
        env.set_parallelism(self.parallelism)
        # A watermark behind every record: there is always one that results may not pass.
        at_once = WatermarkStrategy.for_generator(AtOnce)
        strategy = at_once.with_timestamp_assigner(lambda event, _: event[1] * _APART_MS)
        stream = in_order(env, self.events, strategy).key_by(lambda event: event[0])
        wait = (
            AsyncDataStream.ordered_wait_with_retry
            if self.ordered
            else AsyncDataStream.unordered_wait_with_retry
        )
        service = Service(self.run, self.behaviours)
        retry = AsyncRetryStrategy.fixed_delay(
            _MOST_TRIES, 2, None, lambda error: isinstance(error, OSError)
        )
        timeout = Time.milliseconds(self.timeout_ms)
        asked = wait(stream, service, timeout, retry, self.capacity).key_by(
            lambda answer: answer[0]
        )
        if not self.windowed:
            return asked.process(Count())
        windows = asked.window(TumblingEventTimeWindows.of(Time.milliseconds(_WINDOW_MS)))
        counted: DataStream = windows.apply(lambda key, window, answers: _gathered(key, answers))
        return counted

    def expected(self, arrived: list[Any], one_layout: bool) -> Counter[Any]:
        """What must have come out, given the answers that are in it, as a multiset.

        The order of a key's records is known as long as every key has its subtask.
        """
        if self.windowed:
            return self._windows(arrived)
        found: Counter[Any] = Counter()
        given = {number: (nth, how, crowd) for _, nth, number, how, crowd in arrived}
        nths: Counter[str] = Counter()
        taken: set[tuple[str, int]] = set()
        most = Counter(key for key, _ in self.events)
        for key, number in self.events:
            nths[key] += 1
            nth, how, crowd = given.get(number, (0, ANSWERED, 1))
            if self.ordered and one_layout:
                nth = nths[key]
            elif (key, nth) in taken or not 1 <= nth <= most[key]:
                nth = -1
            taken.add((key, nth))
            found[key, nth, number, self._how(number, how), min(crowd, self.capacity)] += 1
        return found

    def _windows(self, arrived: list[Any]) -> Counter[Any]:
        given = {number: how for _, answers in arrived for number, how in answers}
        windows: dict[tuple[str, int], list[tuple[int, str]]] = {}
        for key, number in self.events:
            window = windows.setdefault((key, number * _APART_MS // _WINDOW_MS), [])
            window.append((number, self._how(number, given.get(number, ANSWERED))))
        return Counter((key, tuple(answers)) for (key, _), answers in windows.items())

    def _how(self, number: int, how: str) -> str:
        """How a record may have been answered."""
        return SILENT if self.behaviours[number].takes_ms < 0 else how


class Service(AsyncFunction):
    """Asks about a record; says how many calls were under way in its subtask, itself included."""

    def __init__(self, run: object, behaviours: tuple[Behaviour, ...]) -> None:
        self._behaviours = behaviours
        self._run = run
        self._tries: Counter[int] = Counter()
        self._crowd = 0
        self._seen: dict[int, int] = {}

    async def async_invoke(self, value: Event) -> list[Any]:
        key, number = value
        behaviour = self._behaviours[number]
        self._crowd += 1
        self._seen[number] = self._crowd
        try:
            await asyncio.sleep(behaviour.takes_ms / 1000 if behaviour.takes_ms >= 0 else 1e6)
        finally:
            self._crowd -= 1
        if behaviour.breaks:
            FailOnce(self._run, number)(number)
        self._tries[number] += 1
        if self._tries[number] <= behaviour.failures:
            raise OSError(f"simulated: the service does not answer about {number}")
        return [(key, number, ANSWERED, self._seen[number])]

    def timeout(self, value: Event) -> list[Any]:
        key, number = value
        return [(key, number, SILENT, self._seen.get(number, 1))]


class Count(KeyedProcessFunction):
    """Says the how manieth of its key every answer is."""

    def open(self, runtime_context: Any) -> None:
        self._count = runtime_context.get_state(ValueStateDescriptor("count", Types.LONG()))

    def process_element(self, value: Any, ctx: Any) -> Any:
        key, number, how, crowd = value
        nth = (self._count.value() or 0) + 1
        self._count.update(nth)
        yield key, nth, number, how, crowd


def _gathered(key: str, answers: Any) -> list[Any]:
    """The answers of a window, by their numbers."""
    return [(key, tuple(sorted((number, how) for _, number, how, _ in answers)))]
