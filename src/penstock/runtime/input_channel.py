"""The receiver's end of a channel: what has arrived and was not read, in order."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import Any

from penstock.checkpoint.handles import MIN_WATERMARK
from penstock.graph.execution_graph import ChannelId
from penstock.network.elements import Barrier, Element, EndOfInput
from penstock.runtime.output import NOWHERE


class InputChannel:
    """The receiver's end of one channel."""

    __slots__ = (
        "blocked",
        "complete",
        "ended",
        "id",
        "idle",
        "input",
        "listed",
        "overtaken",
        "queue",
        "recorded",
        "release",
        "sequence",
        "watermark",
    )

    def __init__(
        self,
        release: Callable[[], None],
        input: int = 0,
        id: ChannelId = NOWHERE,
        overtaken: bool = True,
    ) -> None:
        self.id = id
        self.input = input
        """Which of its operator's inputs it feeds."""
        self.overtaken = overtaken
        """Whether barriers may overtake what is in it."""
        self.recorded = False
        """Whether what arrives is before the cut of an unaligned checkpoint."""
        self.queue: deque[Element | bytes] = deque()
        self.release = release
        """Gives one buffer's credit back to the sender."""
        self.sequence = 0
        self.watermark = MIN_WATERMARK
        self.idle = False
        self.blocked = False
        self.complete = False
        """Whether its end has arrived: nothing more will."""
        self.ended = False
        """Whether its end has been read."""
        self.listed = False

    def before(self, checkpoint: int) -> tuple[list[Any], bool]:
        """What is queued before the barrier of `checkpoint`, and whether that is there."""
        before: list[Any] = []
        for element in self.queue:
            if isinstance(element, EndOfInput):
                return before, True
            if isinstance(element, Barrier) and element.checkpoint == checkpoint:
                return before, True
            before.append(element)
        return before, False
