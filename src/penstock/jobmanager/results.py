"""Values that sinks send to the client, held back until a checkpoint covers them.

A sink never waits for a checkpoint to complete, so there may be many of them: beyond a few
megabytes they wait in a file (`penstock.jobmanager.spilling`), and are handed on as such. They come
to memory again, one message after another, when the client goes through them.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

from penstock.jobmanager.spilling import SpillFile
from penstock.network.messages import Emitted

Deliver = Callable[[str, int, Iterable[Any]], None]
"""(uid of the sink, subtask, values)"""

IN_MEMORY = 16 * 1024 * 1024
"""So many bytes of values wait in memory."""


class _Held(NamedTuple):
    """The values of one message."""

    epoch: int
    uid: str
    subtask: int
    values: Iterable[Any]
    in_memory: int


class ResultGate:
    """Lets values through when they can no longer be taken back."""

    def __init__(self, deliver: Deliver, in_memory: int = IN_MEMORY) -> None:
        self._deliver = deliver
        self._held: list[_Held] = []
        self._completed = 0
        self._room = in_memory
        self._file: SpillFile | None = None

    def emitted(self, message: Emitted) -> None:
        """Deliver or hold the values of a message; StorageError if there is no room for them."""
        if message.epoch == 0:
            self._deliver(message.uid, message.subtask[1], message.values)
            return
        # A new attempt numbers its values from one until it has seen a checkpoint of its own;
        # what is complete by now was complete without them.
        epoch = max(message.epoch, self._completed + 1)
        values: Iterable[Any] = message.values
        size = sum(map(sys.getsizeof, message.values))
        if size > self._room:
            if self._file is None:
                self._file = SpillFile()
            values, size = self._file.put(message.values), 0
        self._room -= size
        # Every message brings a string of its own.
        uid = sys.intern(message.uid)
        self._held.append(_Held(epoch, uid, message.subtask[1], values, size))

    def completed(self, checkpoint: int) -> None:
        """What `checkpoint` covers is final."""
        self._completed = max(self._completed, checkpoint)
        ready = [held for held in self._held if held.epoch <= checkpoint]
        self._held = [held for held in self._held if held.epoch > checkpoint]
        # A file for each checkpoint: its place is free again when the client has read it.
        self._file = None
        for held in ready:
            self._room += held.in_memory
            self._deliver(held.uid, held.subtask, held.values)

    def forget(self) -> None:
        """Let go what no checkpoint covers: a new attempt sends it again, or the job is over."""
        self._room += sum(held.in_memory for held in self._held)
        self._held.clear()
        self._file = None
