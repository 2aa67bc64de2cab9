"""Outputs: the sending end of a subtask's exchanges.

Records gather in one buffer per channel. A buffer that is full is *cut*: it goes to the receiver
if the channel has credit, and waits otherwise. While anything waits, the subtask has no room and
is not run, so at most one buffer waits and one gathers per channel. The barrier of an unaligned
checkpoint overtakes both; what it overtook is part of the checkpoint.
"""

from __future__ import annotations

import pickle
from collections import deque
from typing import Any, Protocol

from penstock.graph.execution_graph import ChannelId
from penstock.network.elements import Barrier, Control, EndOfInput
from penstock.runtime.isolation import isolator

TARGET_BUFFER_BYTES = 64 * 1024
_FIRST_LIMIT = 8
_SAMPLE_EVERY = 64
NOWHERE = ChannelId(-1, -1, -1)
"""The id of a channel that stands alone."""


class Room:
    """How many channels of a subtask hold a buffer that cannot leave; zero means room."""

    __slots__ = ("_held", "_overdraft", "blocked")

    def __init__(self) -> None:
        self.blocked = 0
        self._held = 0
        self._overdraft = 0

    def hold(self) -> None:
        """A channel begins to hold buffers back."""
        self._held += 1
        self._look()

    def let_go(self) -> None:
        """All that a channel held back has left."""
        self._held -= 1
        self._look()

    def spend(self) -> None:
        """One more buffer waits."""
        if self._overdraft:
            self._overdraft -= 1
            self._look()

    def overdraw(self, buffers: int) -> None:
        """Let so many more buffers wait before there is no room: a record must be finished."""
        self._overdraft = buffers
        self._look()

    def _look(self) -> None:
        self.blocked = 0 if self._overdraft else self._held


class Port(Protocol):
    """Carries elements to one receiver, in order."""

    def encode(self, batch: list[Any], flat: bool) -> tuple[Any, int | None]:
        """What to send for a batch, and its size in bytes if that is known for free."""
        ...

    def send_batch(self, encoded: Any, sequence: int) -> None: ...

    def send_control(self, element: Control, sequence: int) -> None: ...


class OutputChannel:
    """The sender's end of one channel: credit, and what waits for it."""

    __slots__ = ("_port", "_room", "_waiting", "credits", "id", "sequence")

    def __init__(self, port: Port, credits: int, room: Room, id: ChannelId = NOWHERE) -> None:
        self.id = id
        self._port = port
        self._room = room
        self._waiting: deque[tuple[bool, Any]] = deque()
        self.credits = credits
        self.sequence = 0

    def batch(self, batch: list[Any], flat: bool) -> int | None:
        """Send records or queue them for credit; their size if it is known."""
        encoded, size = self._port.encode(batch, flat)
        if self.credits > 0 and not self._waiting:
            self.credits -= 1
            self.sequence += 1
            self._port.send_batch(encoded, self.sequence)
        else:
            self._wait(True, encoded)
        return size

    def control(self, element: Control) -> None:
        """Send a control element behind everything that waits; it needs no credit itself."""
        if self._waiting:
            self._wait(False, element)
        else:
            self.sequence += 1
            self._port.send_control(element, self.sequence)

    def _wait(self, is_batch: bool, content: Any) -> None:
        if not self._waiting:
            self._room.hold()
        self._waiting.append((is_batch, content))
        if is_batch:
            self._room.spend()

    def grant(self, credits: int) -> None:
        """The receiver took buffers: send what waited for that."""
        self.credits += credits
        waiting = self._waiting
        if not waiting:
            return
        while waiting:
            is_batch, content = waiting[0]
            if is_batch and self.credits == 0:
                return
            waiting.popleft()
            self.sequence += 1
            if is_batch:
                self.credits -= 1
                self._port.send_batch(content, self.sequence)
            else:
                self._port.send_control(content, self.sequence)
        self._room.let_go()

    # --- unaligned checkpoints ----------------------------------------------------------------

    def waiting(self) -> list[Any]:
        """What waits for credit, as it is sent: encoded batches and control elements."""
        return [content for _, content in self._waiting]

    def overtake(self, barrier: Barrier) -> None:
        """Send `barrier` ahead of all that waits."""
        self.sequence += 1
        self._port.send_control(barrier, self.sequence)

    def holds(self, checkpoint: int) -> bool:
        """Whether the barrier of `checkpoint`, or an end of input in its place, still waits."""
        return any(_stands_for(content, checkpoint) for _, content in self._waiting)

    def pull(self, barrier: Barrier) -> list[Any]:
        """Send a barrier that waits ahead of the rest, as `barrier`; what was before it."""
        waiting = self.waiting()
        place = next(i for i, c in enumerate(waiting) if _stands_for(c, barrier.checkpoint))
        if isinstance(waiting[place], Barrier):
            del self._waiting[place]
        self.overtake(barrier)
        return waiting[:place]

    def may_send(self) -> bool:
        """Whether a batch would leave at once."""
        return self.credits > 0 and not self._waiting


class Output:
    """One subtask's side of one exchange. The compiled chain appends to `buffers` directly."""

    def __init__(
        self,
        channels: list[OutputChannel],
        room: Room,
        most: int,
        by_reference: bool = False,
        overtaken: bool = True,
    ) -> None:
        """With `by_reference` records go out as they are: nobody changes them afterwards.

        `overtaken`: barriers of unaligned checkpoints overtake what waits here.
        """
        self.channels = channels
        self.overtaken = overtaken
        self._room = room
        self.buffers: list[list[Any]] = [[] for _ in channels]
        self._most = most
        self.limit = min(_FIRST_LIMIT, most)
        self._cuts = 0
        self.records = 0
        self.by_reference = by_reference
        self.isolate = isolator(self._deep)
        self._flat = not by_reference

    def _deep(self) -> None:
        """A record holds containers: from now on batches are not taken for flat ones."""
        self._flat = False

    def full(self, index: int) -> int:
        """A buffer reached the limit: cut it. Non-zero when the subtask must pause."""
        self._cut(index)
        return self._room.blocked

    def _cut(self, index: int) -> None:
        batch = self.buffers[index]
        self.buffers[index] = []
        self.records += len(batch)
        size = self.channels[index].batch(batch, self._flat)
        self._adapt(batch, size)

    def _adapt(self, batch: list[Any], size: int | None) -> None:
        """Set the limit so that a buffer has about the target size; grow step by step."""
        self._cuts += 1
        if size is None:
            if self.limit == self._most and self._cuts % _SAMPLE_EVERY:
                return
            size = len(batch) * _size_of(batch[len(batch) // 2])
        fitting = TARGET_BUFFER_BYTES * len(batch) // max(size, 1)
        self.limit = max(1, min(self._most, self.limit * 2, fitting))

    def flush(self) -> bool:
        """Send every buffer that has records and may leave; whether there was one.

        Where there is no credit it gathers on: it leaves fuller, when there is.
        """
        flushed = False
        for index, batch in enumerate(self.buffers):
            if batch and self.channels[index].may_send():
                self._cut(index)
                flushed = True
        return flushed

    def control(self, element: Control) -> None:
        """Send `element` on every channel, behind all records so far."""
        for index, batch in enumerate(self.buffers):
            if batch:
                self._cut(index)
            self.channels[index].control(element)

    def waiting(self) -> dict[OutputChannel, list[Any]]:
        """What has not left, by channel: what waits for credit, then what gathers."""
        found = {}
        for channel, gathering in zip(self.channels, self.buffers, strict=True):
            waiting = channel.waiting()
            if gathering:
                waiting.append(gathering)
            if waiting:
                found[channel] = waiting
        return found


def _stands_for(content: Any, checkpoint: int) -> bool:
    if isinstance(content, EndOfInput):
        return True
    return isinstance(content, Barrier) and content.checkpoint == checkpoint


def _size_of(record: Any) -> int:
    try:
        return len(pickle.dumps(record, protocol=5))
    except Exception:
        # By reference inside the slot even what cannot be pickled may pass; take a usual size.
        return 256
