"""Event time where it begins: from the timestamps of a subtask's splits to its watermark.

Every split has a clock of its own; the watermark of the subtask is the minimum over the clocks
that are not idle. The compiled chain keeps the clock of the split at hand up to date (`current`);
the subtask asks every `pipeline.auto-watermark-interval` how far event time has come.
"""

from __future__ import annotations

import logging
import operator
from collections.abc import Callable, Hashable, Iterable, Iterator
from typing import Any

from penstock.checkpoint.handles import MAX_WATERMARK, MIN_WATERMARK
from penstock.common.clock import Clock
from penstock.common.plain import Plain
from penstock.common.watermark_strategy import (
    WatermarkGenerator,
    WatermarkOutput,
    WatermarkStrategy,
)
from penstock.errors import TimestampError

log = logging.getLogger(__name__)

_NO_SPLIT = None
"""The split of a reader that does not tell its splits apart."""


class SplitClock(WatermarkOutput):
    """How far one split has come, and whether it is waited for."""

    def __init__(self, split: Hashable, owner: EventClock, latest: int) -> None:
        self.split = split
        self.latest = latest
        """The newest timestamp; the chain writes it."""
        self.touched = False
        """Whether there were records since the last tick; the chain writes it."""
        self.quiet_ms = 0
        self.idle = False
        self.paused = False
        """Whether alignment keeps it from being read."""
        self.ended = False
        """Whether its reader has done with it."""
        self._owner = owner
        self._emitted = MIN_WATERMARK
        self.generator: WatermarkGenerator | None = owner.new_generator()

    def watermark(self) -> int:
        delay = self._owner.delay_ms
        if delay is None:
            return self._emitted
        return max(MIN_WATERMARK, self.latest - delay - 1)

    def emit_watermark(self, timestamp: int) -> None:
        timestamp = checked_timestamp(timestamp, "the watermark generator emitted")
        self.idle = False
        if timestamp > self._emitted:
            self._emitted = timestamp
        elif timestamp < self._emitted:
            self._owner.backwards += 1
        self._owner.due = True

    def mark_idle(self) -> None:
        self.idle = True
        self._owner.due = True

    def mark_active(self) -> None:
        self.idle = False
        self._owner.due = True


class EventClock:
    """The event time of one subtask that gives records their timestamps."""

    def __init__(self, strategy: WatermarkStrategy, clock: Clock, restored: Iterable[Any]) -> None:
        self._strategy = strategy
        self._clock = clock
        self.delay_ms = strategy.delay_ms
        self.aligned = strategy.alignment is not None
        """Whether splits wait for others."""
        self._restored: dict[Hashable, int] = {_key(split): latest for split, latest in restored}
        self.due = False
        """A generator emitted something; the chain asks after every record."""
        self.backwards = 0
        """Watermarks of a generator that went back, which were ignored."""
        self.ahead = 0
        """Records that were diverted for being too far ahead."""
        self.pass_on: Callable[[], Iterator[None]] = lambda: iter(())
        """Announces the watermark from within a batch; set by the subtask."""
        self._splits: dict[Hashable, SplitClock] = {}
        self.current = self._clock_of(_NO_SPLIT)
        self.at_hand = False
        """Whether records of `current` are being processed."""
        self._ticked_ms = clock.monotonic_ms()
        self._suspected = False

    def new_generator(self) -> WatermarkGenerator | None:
        supplier = self._strategy.generator
        return None if supplier is None else supplier()

    def _clock_of(self, split: Hashable) -> SplitClock:
        clock = self._splits.get(split)
        if clock is None:
            latest = self._restored.get(split, MIN_WATERMARK)
            clock = self._splits[split] = SplitClock(split, self, latest)
        return clock

    def select(self, split: Any) -> None:
        """The records that come next are of this split."""
        self.current = self._clock_of(_key(split))
        self.at_hand = True

    def retain(self, splits: Iterable[Any]) -> None:
        """These are the splits that are read now; others have ended or gone elsewhere."""
        kept = {key: self._clock_of(key) for key in map(_key, splits)}
        self.current.ended = self.current.split not in kept
        # A reader may have done with a split whose last records are still at hand. And a reader
        # with nothing to read is one with a silent split, which says how far event time has come.
        if self.at_hand or not kept:
            kept[self.current.split] = self.current
        self._splits = kept

    def is_ahead(self, timestamp: int) -> bool:
        """Whether a record is further ahead of the processing time than the strategy allows."""
        bound = self._strategy.jump
        assert bound is not None
        if timestamp <= self._clock.now_ms() + bound.bound_ms:
            return False
        self.ahead += 1
        return True

    def tick(self, now_ms: int, held_up_ms: int) -> None:
        """Time passed, `held_up_ms` of it without room downstream: that is nobody's idleness.

        By a clock that is never set: whoever sets the machine's clock makes nobody idle.
        """
        passed = max(0, now_ms - self._ticked_ms - held_up_ms)
        self._ticked_ms = now_ms
        timeout = self._strategy.idle_timeout_ms
        for clock in self._splits.values():
            if clock.generator is not None:
                clock.generator.on_periodic_emit(clock)
            if clock.touched:
                self._suspect_seconds(clock.latest)
                clock.touched, clock.quiet_ms, clock.idle = False, 0, False
            elif timeout is not None and not clock.paused:
                clock.quiet_ms += passed
                clock.idle = clock.idle or clock.quiet_ms >= timeout
        self.due = False

    def align(self, limit: int) -> tuple[list[Plain], list[Plain]]:
        """The splits to pause and to resume, so that none is too far ahead.

        None may be beyond `limit`, nor further ahead of the slowest split of this subtask than the
        strategy allows.
        """
        assert self._strategy.alignment is not None
        limit = min(limit, self.watermark() + self._strategy.alignment.drift_ms)
        pause: list[Plain] = []
        resume: list[Plain] = []
        for clock in self._splits.values():
            ahead = clock.watermark() > limit
            if ahead != clock.paused and not clock.ended:
                (pause if ahead else resume).append(clock.split)
                clock.paused = ahead
        return pause, resume

    def _suspect_seconds(self, timestamp: int) -> None:
        """Say so once if timestamps look like seconds: as milliseconds they are in early 1970."""
        if not self._suspected and 1_000_000_000 <= timestamp < 10_000_000_000:
            self._suspected = True
            log.warning(
                "a record has the timestamp %d, which is in January to April 1970: it looks like "
                "seconds, and milliseconds are expected; multiply it by 1000",
                timestamp,
            )

    def idle(self) -> bool:
        """Whether nobody need wait for this subtask."""
        return all(clock.idle and not clock.touched for clock in self._splits.values())

    def watermark(self) -> int:
        """The minimum over the splits that are not idle; over all of them if all are."""
        active = [c for c in self._splits.values() if not c.idle or c.touched]
        clocks = active or list(self._splits.values())
        return min((clock.watermark() for clock in clocks), default=MIN_WATERMARK)

    def holding(self) -> SplitClock | None:
        """The split that keeps the watermark where it is."""
        # A copy at once: the heartbeat's thread asks.
        active = [clock for clock in list(self._splits.values()) if not clock.idle]
        return min(active, key=lambda clock: clock.watermark(), default=None)

    def snapshot(self) -> tuple[Plain, ...]:
        """The newest timestamp of every split."""
        return tuple([clock.split, clock.latest] for clock in self._splits.values())


def _key(split: Any) -> Hashable:
    """A split as it is told apart: plain values come back from a checkpoint as lists."""
    return tuple(_key(part) for part in split) if isinstance(split, list | tuple) else split


def checked_timestamp(timestamp: Any, what: str = "the timestamp assigner returned") -> int:
    """`timestamp` as an int of 64 bits, a float cut off; TimestampError for what is no time."""
    if timestamp is None:
        raise TimestampError(f"{what} None: every record needs a time, in milliseconds (int)")
    try:
        if isinstance(timestamp, bool):
            raise TypeError
        cut = int(timestamp) if isinstance(timestamp, float) else operator.index(timestamp)
    except (OverflowError, TypeError, ValueError):
        raise TimestampError(
            f"{what} {timestamp!r}, a {type(timestamp).__name__}, where milliseconds since the "
            "epoch (int) are expected"
        ) from None
    if not MIN_WATERMARK <= cut <= MAX_WATERMARK:
        raise TimestampError(f"{what} {timestamp}, which is beyond 64 bits")
    return cut
