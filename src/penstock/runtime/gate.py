"""The input gate: one queue per channel, read in turns, with barriers aligned.

What comes out of `poll` is one stream: batches as they were sent; a watermark when the minimum
over the channels that are not idle rises; whether all of them are idle; a barrier when all
channels have brought it; the end of input when all have ended. In exactly-once mode a channel that
has brought a barrier is not read until the others have brought it too. A channel that has ended
counts as having brought every later barrier.

The barrier of an unaligned checkpoint counts as soon as it has arrived, whatever is queued before
it. Then the subtask is asked to cut at once (`overtaking`), and all that is before the barriers
and was not read is recorded: what is queued, and what arrives until the last barrier does.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping, Sequence
from typing import Any

from penstock.checkpoint.handles import MAX_WATERMARK, MIN_WATERMARK
from penstock.common.clock import Clock
from penstock.graph.execution_graph import ChannelId
from penstock.network.elements import (
    END_OF_INPUT,
    Barrier,
    Element,
    EndOfInput,
    Watermark,
    WatermarkStatus,
)
from penstock.network.frames import load_element
from penstock.runtime.in_flight import InFlight
from penstock.runtime.input_channel import InputChannel


class InputGate:
    """The input of one subtask."""

    def __init__(self, channels: list[InputChannel], exactly_once: bool, clock: Clock) -> None:
        self.channels = channels
        self._exactly_once = exactly_once
        self._clock = clock
        self._readable: deque[InputChannel] = deque()
        self._derived: deque[Element] = deque()
        self._watermark = MIN_WATERMARK
        self._idle = False
        self._aligning: Barrier | None = None
        self._arrived: set[int] = set()
        self._last_barrier = 0
        self._alignment_started = 0
        self._restored: deque[tuple[InputChannel, Watermark | bytes]] = deque()
        self._newest: Barrier | None = None
        self._may_overtake = 0
        self._in_flight: InFlight | None = None
        self.overtaking: Barrier | None = None
        """The barrier of an unaligned checkpoint: it is to be cut before anything else is read."""
        self.channel = channels[0]
        """In which the batch came that `poll` gave last."""
        self.alignment_ns = 0
        """How long the last barrier waited for its siblings."""

    def push(self, channel: InputChannel, element: Element | bytes) -> None:
        """Put an element in the channel's queue; a batch may still be encoded."""
        if channel.recorded:
            self._record(channel, element)
        channel.queue.append(element)
        self._list(channel)
        if element.__class__ is Barrier:
            self._announced(element)
        elif element.__class__ is EndOfInput:
            channel.complete = True

    def _list(self, channel: InputChannel) -> None:
        if channel.queue and not channel.listed and not channel.blocked:
            channel.listed = True
            self._readable.append(channel)

    def has_input(self) -> bool:
        return bool(self._readable or self._derived or self._restored)

    def queued(self) -> int:
        """Elements that wait to be read, over all channels."""
        return sum(len(channel.queue) for channel in self.channels)

    def poll(self) -> Element | None:
        """The next element, or None when nothing can be read now."""
        while not self._derived:
            if self._restored:
                batch = self._poll_restored()
                if batch is not None:
                    return batch
                continue
            if not self._readable:
                return None
            channel = self._readable.popleft()
            channel.listed = False
            element = channel.queue.popleft()
            if isinstance(element, list | bytes):
                self._list(channel)
                self.channel = channel
                channel.release()
                return element if isinstance(element, list) else load_element(element)
            self._control(channel, element)
            self._list(channel)
            if self.overtaking is not None:
                return None
        return self._derived.popleft()

    def _control(self, channel: InputChannel, element: Any) -> None:
        if isinstance(element, Watermark):
            channel.watermark = max(channel.watermark, element.timestamp)
            self._advance()
        elif isinstance(element, WatermarkStatus):
            channel.idle = element.idle
            self._advance()
        elif isinstance(element, Barrier):
            self._barrier(channel, element)
        elif isinstance(element, EndOfInput):
            channel.ended = True
            channel.watermark = MAX_WATERMARK
            self._check_aligned()
            self._check_overtaking()
            self._advance()
            if all(each.ended for each in self.channels):
                self._derived.append(END_OF_INPUT)

    def _advance(self) -> None:
        open_channels = [channel for channel in self.channels if not channel.ended]
        active = [channel for channel in open_channels if not channel.idle]
        if active:
            # One that was idle and is behind is waited for again once it has caught up.
            caught_up = [c.watermark for c in active if c.watermark >= self._watermark]
            self._rise(min(caught_up, default=self._watermark))
        elif open_channels:
            self._rise(max(channel.watermark for channel in open_channels))
        else:
            self._rise(MAX_WATERMARK)
        idle = bool(open_channels) and not active
        if idle != self._idle:
            self._idle = idle
            self._derived.append(WatermarkStatus(idle))

    def _rise(self, watermark: int) -> None:
        if watermark > self._watermark:
            self._watermark = watermark
            self._derived.append(Watermark(watermark))

    def holding(self) -> InputChannel | None:
        """The channel that keeps the watermark where it is."""
        active = [c for c in self.channels if not c.ended and not c.idle]
        return min(active, key=lambda channel: channel.watermark, default=None)

    def _barrier(self, channel: InputChannel, barrier: Barrier) -> None:
        if barrier.checkpoint <= self._last_barrier:
            return
        if self._aligning is not None and barrier.checkpoint < self._aligning.checkpoint:
            # Overtaken before it came. The channel's newer barrier is still to come.
            return
        if self._aligning is None or barrier.checkpoint > self._aligning.checkpoint:
            # A newer barrier overtakes: the older checkpoint can no longer complete here.
            self._stop_aligning()
            self._aligning = barrier
            self._alignment_started = self._clock.monotonic_ns()
        self._arrived.add(id(channel))
        channel.blocked = self._exactly_once
        self._check_aligned()
        self._check_overtaking()

    def _check_aligned(self) -> None:
        barrier = self._aligning
        if barrier is None:
            return
        # An unaligned one is cut with what was recorded, though that is nothing but watermarks.
        unaligned = barrier.checkpoint == self._may_overtake
        if not unaligned and all(self._has_brought(each) for each in self.channels):
            self.alignment_ns = self._clock.monotonic_ns() - self._alignment_started
            self._last_barrier = barrier.checkpoint
            self._derived.append(barrier)
            self._stop_aligning()

    def _has_brought(self, channel: InputChannel) -> bool:
        """Whether the channel has brought the barrier that is aligned, by its end if need be."""
        return channel.ended or id(channel) in self._arrived

    def _stop_aligning(self) -> None:
        self._aligning = None
        self._arrived.clear()
        for channel in self.channels:
            if channel.blocked:
                channel.blocked = False
                self._list(channel)

    def abort(self, checkpoint: int) -> None:
        """The checkpoint was given up: read on."""
        # Remembered also before its first barrier is here: those that still come must not block,
        # because the siblings that heard of this earlier have dropped theirs.
        self._last_barrier = max(self._last_barrier, checkpoint)
        if self._aligning is not None and self._aligning.checkpoint <= checkpoint:
            self._stop_aligning()
        if self.overtaking is not None and self.overtaking.checkpoint <= checkpoint:
            self.overtaking = None
        if self._in_flight is not None and self._in_flight.checkpoint <= checkpoint:
            self._stop_recording()
        # The next one may be here already.
        self._check_overtaking()

    # --- unaligned checkpoints ----------------------------------------------------------------

    def may_overtake(self, checkpoint: int) -> None:
        """From now on the barriers of `checkpoint` count as soon as they arrive."""
        self._may_overtake = max(self._may_overtake, checkpoint)
        self._check_overtaking()

    def demand(self, barrier: Barrier) -> None:
        """An unaligned checkpoint begins: where the end of every channel is here, no barrier comes.

        The ends may be queued behind much that was not read, and count as barriers all the same.
        """
        if all(channel.complete for channel in self.channels):
            self._announced(barrier)

    def _announced(self, barrier: Barrier) -> None:
        """A barrier has arrived, and is queued."""
        if self._newest is None or barrier.checkpoint > self._newest.checkpoint:
            self._newest = barrier
        if barrier.overtakes_after_ms == 0:
            self._may_overtake = max(self._may_overtake, barrier.checkpoint)
        self._check_overtaking()

    def _check_overtaking(self) -> None:
        """Ask for the cut if a barrier is here that may overtake, and nothing is to be aligned."""
        barrier = self._newest
        if barrier is None or barrier.checkpoint != self._may_overtake:
            return
        if self.overtaking is not None or barrier.checkpoint <= self._last_barrier:
            return
        aligns = self._aligning is not None and self._aligning.checkpoint == barrier.checkpoint
        for channel in self.channels:
            if channel.overtaken or channel.ended:
                continue
            if not (aligns and id(channel) in self._arrived):
                return
        self._alignment_started = self._clock.monotonic_ns()
        self.overtaking = barrier

    def cut(self, in_flight: InFlight, batch: list[Any]) -> None:
        """The cut is here: note what is before it, `batch` included, which `poll` gave last.

        What arrives before the last barrier is added until then.
        """
        barrier, self.overtaking = self.overtaking, None
        assert barrier is not None
        self._stop_recording()
        checkpoint = barrier.checkpoint
        aligns = self._aligning is not None and self._aligning.checkpoint == checkpoint
        for channel in self.channels:
            before: list[Any] = []
            if channel.watermark > MIN_WATERMARK and not channel.ended:
                before.append(Watermark(channel.watermark))
            if channel is self.channel and batch:
                before.append(batch)
            before += [element for other, element in self._restored if other is channel]
            arrived = channel.ended or (aligns and id(channel) in self._arrived)
            if not arrived:
                queued, arrived = channel.before(checkpoint)
                before += queued
            in_flight.add(channel.id, before)
            if not arrived:
                channel.recorded = True
                in_flight.opened(channel.id)
        self._last_barrier = checkpoint
        self._stop_aligning()
        if in_flight.whole_input():
            in_flight.alignment_ns = self._clock.monotonic_ns() - self._alignment_started
        else:
            self._in_flight = in_flight
        self._check_overtaking()

    def _record(self, channel: InputChannel, element: Element | bytes) -> None:
        """Something arrived in a channel whose barrier has not come yet."""
        in_flight = self._in_flight
        assert in_flight is not None
        if isinstance(element, Barrier) and element.checkpoint > in_flight.checkpoint:
            # The next checkpoint has begun, so this one was given up.
            self._stop_recording()
        elif isinstance(element, Barrier) and element.checkpoint < in_flight.checkpoint:
            return
        elif isinstance(element, Barrier | EndOfInput):
            channel.recorded = False
            if in_flight.closed(channel.id):
                in_flight.alignment_ns = self._clock.monotonic_ns() - self._alignment_started
                self._in_flight = None
        else:
            in_flight.add(channel.id, [element])

    def _stop_recording(self) -> None:
        self._in_flight = None
        for channel in self.channels:
            channel.recorded = False

    def restore(self, elements: Mapping[ChannelId, Sequence[int | bytes]]) -> None:
        """What was under way when the checkpoint was made: it comes before all that is new."""
        for turn in range(max(map(len, elements.values()), default=0)):
            for channel in self.channels:
                own = elements.get(channel.id, ())
                if turn < len(own):
                    element = own[turn]
                    restored = Watermark(element) if isinstance(element, int) else element
                    self._restored.append((channel, restored))

    def _poll_restored(self) -> Element | None:
        channel, element = self._restored.popleft()
        if isinstance(element, bytes):
            # No credit goes back: none was spent in this attempt.
            self.channel = channel
            batch: list[Any] = load_element(element)
            return batch
        self._control(channel, element)
        return None
