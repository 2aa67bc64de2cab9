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
        self._held: list[Emitted] = []

    def emitted(self, message: Emitted) -> None:
        if message.epoch == 0:
            self._deliver(message.uid, message.subtask[1], message.values)
        else:
            self._held.append(message)

    def completed(self, checkpoint: int) -> None:
        """What `checkpoint` covers is final."""
        ready = [message for message in self._held if message.epoch <= checkpoint]
        self._held = [message for message in self._held if message.epoch > checkpoint]
        for message in ready:
            self._deliver(message.uid, message.subtask[1], message.values)

    def restarted(self) -> None:
        """A new attempt sends again what no checkpoint covers."""
        self._held.clear()
