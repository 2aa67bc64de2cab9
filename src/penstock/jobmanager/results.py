"""Values that sinks send to the client, held back until a checkpoint covers them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from penstock.network.messages import Emitted

Deliver = Callable[[str, int, list[Any]], None]
"""(uid of the sink, subtask, values)"""


class ResultGate:
    """Lets values through when they can no longer be taken back."""

    def __init__(self, deliver: Deliver) -> None:
        self._deliver = deliver
        self._held: list[tuple[int, Emitted]] = []
        self._completed = 0

    def emitted(self, message: Emitted) -> None:
        if message.epoch == 0:
            self._deliver(message.uid, message.subtask[1], message.values)
        else:
            # A new attempt numbers its values from one until it has seen a checkpoint of its own;
            # what is complete by now was complete without them.
            self._held.append((max(message.epoch, self._completed + 1), message))

    def completed(self, checkpoint: int) -> None:
        """What `checkpoint` covers is final."""
        self._completed = checkpoint
        ready = [message for epoch, message in self._held if epoch <= checkpoint]
        self._held = [entry for entry in self._held if entry[0] > checkpoint]
        for message in ready:
            self._deliver(message.uid, message.subtask[1], message.values)

    def restarted(self) -> None:
        """A new attempt sends again what no checkpoint covers."""
        self._held.clear()
