"""A subtask's part in event time: how far it has come, and who is told.

Where event time begins, the subtask's clock says how far; elsewhere the watermarks that come in.
Either way timers fire first, then the watermark goes downstream.
"""

from __future__ import annotations

from collections.abc import Iterator

from penstock.checkpoint.handles import MAX_WATERMARK
from penstock.common.clock import Clock, has_come
from penstock.common.plain import Plain
from penstock.network.elements import Watermark, WatermarkStatus
from penstock.runtime.accounting import Accounting, Activity
from penstock.runtime.functions import TimeDomain
from penstock.runtime.split_reading import SplitReading
from penstock.runtime.subtask_parts import SubtaskParts


class EventProgress:
    """The event time of one subtask."""

    def __init__(
        self,
        parts: SubtaskParts,
        clock: Clock,
        accounting: Accounting,
        reading: SplitReading | None,
    ) -> None:
        self._parts = parts
        self._clock = clock
        self._accounting = accounting
        self._outputs = parts.outputs
        self._reading = reading
        self.watermark = parts.watermark
        self.idle = False
        """Whether nobody waits for this subtask."""
        self.clock = parts.clock
        """Of a subtask in which event time begins."""
        self.tick_at_ms: int | None = None
        """When the next watermark is due by the processing time."""
        self.advanced_ms: int | None = None
        """When the watermark last moved."""
        self._held_up_ns = 0
        self._limit = MAX_WATERMARK
        if self.clock is not None and not parts.finished:
            self.clock.pass_on = self.announce
            if parts.watermark_interval_ms > 0:
                self.tick_at_ms = clock.now_ms() + parts.watermark_interval_ms

    def tick_due(self, now_ms: int) -> bool:
        return has_come(self.tick_at_ms, self._parts.watermark_interval_ms, now_ms)

    def tick(self, now_ms: int) -> Iterator[None]:
        """The time for watermarks has come."""
        assert self.clock is not None
        self.tick_at_ms = now_ms + self._parts.watermark_interval_ms
        totals = self._accounting.upto(self._clock.monotonic_ns())
        held_up_ns = totals[Activity.BACKPRESSURED.value]
        held_up_ms = (held_up_ns - self._held_up_ns) // 1_000_000
        # Whom alignment keeps from reading is not silent.
        passed_ms = self._clock.monotonic_ms()
        self.clock.tick(passed_ms, passed_ms if self.aligned() else held_up_ms)
        self._held_up_ns = held_up_ns
        self.between_batches()
        return self.announce()

    def between_batches(self) -> None:
        """All that was read is processed: splits may have ended, and others may have to wait."""
        if self.clock is not None:
            self.clock.at_hand = False
            self._align_splits()

    def align(self, limit: int) -> None:
        """Read no further than to this watermark."""
        self._limit = limit
        self._align_splits()

    def _align_splits(self) -> None:
        """Let single splits wait that are ahead of others."""
        if self.clock is not None and self._reading is not None and self.watermark < MAX_WATERMARK:
            self._reading.align(self.clock, self._limit)

    def aligned(self) -> bool:
        """Whether the subtask must wait for the slowest source of its group."""
        clock = self.clock
        return (
            clock is not None and self._limit != MAX_WATERMARK and clock.watermark() > self._limit
        )

    def announce(self) -> Iterator[None]:
        """Say how far event time has come, if that is news."""
        clock = self.clock
        assert clock is not None
        clock.due = False
        if self._reading is not None:
            self._reading.forget_ended(clock)
        # A reader without splits is waited for until the enumerator has said that it has none.
        without = self._reading is not None and self._reading.without_splits
        self.set_idle(without or clock.idle())
        watermark = clock.watermark()
        if watermark > self.watermark:
            yield from self.advance(watermark)

    def set_idle(self, idle: bool) -> None:
        if idle != self.idle:
            self.idle = idle
            for output in self._outputs:
                output.control(WatermarkStatus(idle))

    def wake_up(self) -> None:
        """There are records: whoever waits no longer for this subtask must do so again."""
        if self.idle and self.clock is not None:
            self.clock.current.mark_active()
            self.set_idle(False)

    def advance(self, timestamp: int) -> Iterator[None]:
        """Let time pass down the chain, timers and all; then the watermark goes downstream."""
        self.watermark = timestamp
        self.advanced_ms = self._clock.now_ms()
        yield from self._parts.chain.fire[TimeDomain.EVENT_TIME](timestamp)
        for output in self._outputs:
            output.control(Watermark(timestamp))

    def announce_restored(self) -> Iterator[None]:
        """Say downstream how far event time had come: there the channels begin anew."""
        for output in self._outputs:
            output.control(Watermark(self.watermark))
        yield from ()

    def end(self) -> Iterator[None]:
        """Event time comes to its end."""
        if self.watermark < MAX_WATERMARK:
            yield from self.advance(MAX_WATERMARK)

    def snapshot(self) -> tuple[Plain, ...]:
        """The clocks of the splits, where event time begins."""
        return () if self.clock is None else self.clock.snapshot()

    def holder(self) -> int | str | None:
        """What holds the watermark back: the number of an input channel, or the name of a split."""
        if self.clock is not None:
            split = self.clock.holding()
            return None if split is None else str(split.split)
        gate = self._parts.gate
        channel = None if gate is None else gate.holding()
        return None if gate is None or channel is None else gate.channels.index(channel)
