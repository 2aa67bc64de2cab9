"""Programs whose answer depends on the clock: state that expires, timers by processing time.

Nobody can say beforehand at which time a record is processed, and after a failure it is processed
at another one. So the functions of a case say what time it was, and the oracle answers what they
must have seen at that time: for every record exactly one thing.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from penstock.common import Duration, WatermarkStrategy
from penstock.common.typeinfo import Types
from penstock.datastream import DataStream, KeyedProcessFunction, StreamExecutionEnvironment
from penstock.datastream.connectors.data_generator import DataGeneratorSource
from penstock.datastream.functions import AggregateFunction
from penstock.datastream.state import (
    AggregatingStateDescriptor,
    ListStateDescriptor,
    MapStateDescriptor,
    ReducingStateDescriptor,
    StateTtlConfig,
    ValueStateDescriptor,
)
from penstock.testing.choices import Choices
from penstock.testing.event_programs import EVENTS

KEYS = "abcde"
STATES = ("value", "reducing", "aggregating", "list", "map")
"""The kinds of state that a case may be about."""
TIMERS = "timers"
RATE = 500
"""Records per second."""
_PLACES = 3
"""How many entries the map of a key has."""

Event = tuple[str, int]
"""Key and number."""


def random_events(choices: Choices) -> tuple[Event, ...]:
    """The input of a seed; the numbers of records rise."""
    rng = choices("events")
    return tuple((rng.choice(KEYS), number) for number in range(rng.randrange(1, 70)))


def in_order(
    env: StreamExecutionEnvironment, events: tuple[Any, ...], strategy: WatermarkStrategy
) -> DataStream:
    """The events from one reader, at a rate: time passes while they come."""
    source = DataGeneratorSource(lambda n: events[n], len(events), RATE)
    return env.from_source(source, strategy, EVENTS).set_parallelism(1)


@dataclass(frozen=True)
class ClockCase:
    """One program with its input and its oracle."""

    kind: str
    parallelism: int
    for_ms: int
    """How long an entry lives, or how long a timer takes."""
    on_read: bool
    """Whether reading makes an entry live anew."""
    shows_expired: bool
    """Whether an entry that has expired is seen once more: then nothing else removes it."""
    cleanup: str
    events: tuple[Event, ...]

    @staticmethod
    def random(seed: int) -> ClockCase:
        """The case of a seed."""
        choices = Choices(seed)
        rng = choices("clock case")
        return ClockCase(
            rng.choice((*STATES, TIMERS, TIMERS)),
            rng.randint(1, 3),
            rng.choice((3, 10, 10, 30, 300, 5000)),
            rng.random() < 0.4,
            rng.random() < 0.2,
            rng.choice(("usual", "every record", "snapshots", "none")),
            random_events(choices),
        )

    def build(self, env: StreamExecutionEnvironment) -> DataStream:
        """The program."""
        env.set_parallelism(self.parallelism)
        stream = in_order(env, self.events, WatermarkStrategy.no_watermarks())
        keyed = stream.key_by(lambda event: event[0])
        if self.kind == TIMERS:
            return keyed.process(Remind(self.for_ms))
        return keyed.process(Remember(self.kind, self._ttl()))

    def _ttl(self) -> StateTtlConfig:
        builder = StateTtlConfig.new_builder(Duration.of_millis(self.for_ms))
        if self.on_read:
            builder = builder.update_ttl_on_read_and_write()
        if self.shows_expired:
            return (
                builder.return_expired_if_not_cleaned_up().disable_cleanup_in_background().build()
            )
        if self.cleanup == "every record":
            builder = builder.cleanup_incrementally(1, True)
        elif self.cleanup == "snapshots":
            builder = builder.cleanup_full_snapshot()
        elif self.cleanup == "none":
            builder = builder.disable_cleanup_in_background()
        return builder.build()

    def expected(self, arrived: list[Any]) -> Counter[Any]:
        """What must have come out, given the times that are in it, as a multiset."""
        if self.kind == TIMERS:
            return self._reminders(arrived)
        times = {record[1]: record[2] for record in arrived}
        found: Counter[Any] = Counter()
        known: dict[str, list[Entry]] = {}
        for key, number in self.events:
            now = times.get(number)
            if now is None:
                found[key, number, "at any time"] += 1
                continue
            entries = known.get(key, [])
            alive = [entry for entry in entries if entry.written_ms + self.for_ms > now]
            seen = entries if self.shows_expired else alive
            found[key, number, now, shown(self.kind, [entry.value for entry in seen])] += 1
            if self.on_read:
                alive = [Entry(entry.place, entry.value, now) for entry in alive]
            known[key] = self._written(alive, number, now) if writes(number) else alive
        return found

    def _written(self, alive: list[Entry], number: int, now: int) -> list[Entry]:
        place = number % _PLACES if self.kind == "map" else number
        if self.kind in ("value", "reducing", "aggregating"):
            before = 0 if self.kind == "value" else sum(entry.value for entry in alive)
            return [Entry(0, before + number, now)]
        return [entry for entry in alive if entry.place != place] + [Entry(place, number, now)]

    def _reminders(self, arrived: list[Any]) -> Counter[Any]:
        """A turn after another, each record sets a timer and each timer is the first one due."""
        found: Counter[Any] = Counter()
        left = {number: key for key, number in self.events}
        for key in KEYS:
            pending: set[int] = set()
            mine = sorted((record for record in arrived if record[0] == key), key=lambda r: r[1])
            for turn, (_, _, number, now, due) in enumerate(mine, 1):
                if number is None:
                    # A timer comes when its time has come, and no earlier one of the key waits.
                    right = bool(pending) and due == min(pending) and due <= now
                    found[key, turn, None, now, due if right else "too early or not set"] += 1
                    pending.discard(due)
                else:
                    known = left.pop(number, None) == key
                    found[key, turn, number if known else "another", now, now + self.for_ms] += 1
                    pending.add(now + self.for_ms)
        found.update((key, "in any turn", number) for number, key in left.items())
        return found


@dataclass(frozen=True)
class Entry:
    """What a state must hold: an entry of a map, an element of a list, or all there is."""

    place: int
    value: int
    written_ms: int


def writes(number: int) -> bool:
    """Whether a record is written, or only looks at what was."""
    return number % 4 != 3


def shown(kind: str, values: list[int]) -> Any:
    """What a function shows of the values it sees in a state."""
    if kind in ("list", "map"):
        return tuple(sorted(values))
    return values[0] if values else None


class Total(AggregateFunction):
    """A sum, in a list that is changed in place."""

    def create_accumulator(self) -> Any:
        return [0]

    def add(self, value: Any, accumulator: Any) -> Any:
        accumulator[0] += value
        return accumulator

    def get_result(self, accumulator: Any) -> Any:
        return accumulator[0]

    def merge(self, acc_a: Any, acc_b: Any) -> Any:
        return [acc_a[0] + acc_b[0]]


class Remember(KeyedProcessFunction):
    """Shows for every record what is still known of those before it."""

    def __init__(self, kind: str, ttl: StateTtlConfig) -> None:
        self._kind = kind
        self._ttl = ttl

    def open(self, runtime_context: Any) -> None:
        long = Types.LONG()
        make: dict[str, Callable[[], tuple[Any, Any]]] = {
            "value": lambda: (runtime_context.get_state, ValueStateDescriptor("known", long)),
            "reducing": lambda: (
                runtime_context.get_reducing_state,
                ReducingStateDescriptor("known", lambda a, b: a + b, long),
            ),
            "aggregating": lambda: (
                runtime_context.get_aggregating_state,
                AggregatingStateDescriptor("known", Total(), Types.LIST(long)),
            ),
            "list": lambda: (runtime_context.get_list_state, ListStateDescriptor("known", long)),
            "map": lambda: (runtime_context.get_map_state, MapStateDescriptor("known", long, long)),
        }
        get, descriptor = make[self._kind]()
        descriptor.enable_time_to_live(self._ttl)
        self._state = get(descriptor)

    def process_element(self, value: Event, ctx: Any) -> Any:
        key, number = value
        now = ctx.timer_service().current_processing_time()
        seen = self._read()
        if writes(number):
            self._write(number)
        # Only now: time may pass before what is given away is taken.
        yield key, number, now, seen

    def _read(self) -> Any:
        if self._kind == "value":
            return self._state.value()
        if self._kind == "map":
            return tuple(sorted(self._state.values()))
        return tuple(sorted(self._state.get())) if self._kind == "list" else self._state.get()

    def _write(self, number: int) -> None:
        if self._kind == "value":
            self._state.update(number)
        elif self._kind == "map":
            self._state.put(number % _PLACES, number)
        else:
            self._state.add(number)


class Remind(KeyedProcessFunction):
    """A timer after every record; each says at what time it came, and in which turn of its key."""

    def __init__(self, after_ms: int) -> None:
        self._after_ms = after_ms

    def open(self, runtime_context: Any) -> None:
        self._turns = runtime_context.get_state(ValueStateDescriptor("turns", Types.LONG()))

    def process_element(self, value: Event, ctx: Any) -> Any:
        key, number = value
        now = ctx.timer_service().current_processing_time()
        ctx.timer_service().register_processing_time_timer(now + self._after_ms)
        yield key, self._turn(), number, now, now + self._after_ms

    def on_timer(self, timestamp: int, ctx: Any) -> Any:
        now = ctx.timer_service().current_processing_time()
        yield ctx.get_current_key(), self._turn(), None, now, timestamp

    def _turn(self) -> int:
        turn = (self._turns.value() or 0) + 1
        self._turns.update(turn)
        return turn
