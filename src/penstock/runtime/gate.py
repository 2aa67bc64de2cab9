"""The input gate: one queue per channel, read in turns, with barriers aligned.

What comes out of `poll` is one stream: batches as they were sent; a watermark when the minimum
over the channels that are not idle rises; whether all of them are idle; a barrier when all
channels have brought it; the end of input when all have ended. In exactly-once mode a channel that
has brought a barrier is not read until the others have brought it too. A channel that has ended
counts as having brought every later barrier.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import Any

from penstock.checkpoint.handles import MAX_WATERMARK, MIN_WATERMARK
from penstock.common.clock import Clock
from penstock.network.elements import (
    END_OF_INPUT,
    Barrier,
    Element,
    EndOfInput,
    Watermark,
    WatermarkStatus,
)
from penstock.network.frames import load_element


class InputChannel:
    """The receiver's end of one channel."""

    __slots__ = (
        "blocked",
        "ended",
        "idle",
        "input",
        "listed",
        "queue",
        "release",
        "sequence",
        "watermark",
    )

    def __init__(self, release: Callable[[], None], input: int = 0) -> None:
        self.input = input
        """Which of its operator's inputs it feeds."""
        self.queue: deque[Element | bytes] = deque()
        self.release = release
        """Gives one buffer's credit back to the sender."""
        self.sequence = 0
        self.watermark = MIN_WATERMARK
        self.idle = False
        self.blocked = False
        self.ended = False
        self.listed = False


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
        self.input = 0
        """Which input the batch that `poll` gave last belongs to."""
        self.alignment_ns = 0
        """How long the last barrier waited for its siblings."""

    def push(self, channel: InputChannel, element: Element | bytes) -> None:
        """Put an element in the channel's queue; a batch may still be encoded."""
        channel.queue.append(element)
        self._list(channel)

    def _list(self, channel: InputChannel) -> None:
        if channel.queue and not channel.listed and not channel.blocked:
            channel.listed = True
            self._readable.append(channel)

    def has_input(self) -> bool:
        return bool(self._readable or self._derived)

    def queued(self) -> int:
        """Elements that wait to be read, over all channels."""
        return sum(len(channel.queue) for channel in self.channels)

    def poll(self) -> Element | None:
        """The next element, or None when nothing can be read now."""
        while not self._derived:
            if not self._readable:
                return None
            channel = self._readable.popleft()
            channel.listed = False
            element = channel.queue.popleft()
            if isinstance(element, list | bytes):
                self._list(channel)
                self.input = channel.input
                channel.release()
                return element if isinstance(element, list) else load_element(element)
            self._control(channel, element)
            self._list(channel)
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

    def _check_aligned(self) -> None:
        barrier = self._aligning
        if barrier is None:
            return
        if all(each.ended or id(each) in self._arrived for each in self.channels):
            self.alignment_ns = self._clock.monotonic_ns() - self._alignment_started
            self._last_barrier = barrier.checkpoint
            self._derived.append(barrier)
            self._stop_aligning()

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
