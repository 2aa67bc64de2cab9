"""An emitter: a sink's way to the client, with a window so that a slow client slows the sink."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from penstock.graph.execution_graph import SubtaskId
from penstock.network.messages import Emitted

WINDOW = 16
"""Messages that may be on their way to the client."""


class Emitter:
    """Sends values of one sink in one subtask to the JobMaster."""

    def __init__(
        self,
        attempt: int,
        subtask: SubtaskId,
        uid: str,
        tell: Callable[[Any], None],
        epoch: Callable[[], int],
    ) -> None:
        self._attempt = attempt
        self._subtask = subtask
        self._uid = uid
        self._tell = tell
        self._epoch = epoch
        self._credits = WINDOW

    def has_room(self) -> bool:
        return self._credits > 0

    def emit(self, values: list[Any], transactional: bool) -> None:
        self._credits -= 1
        epoch = self._epoch() if transactional else 0
        self._tell(Emitted(self._attempt, self._subtask, self._uid, epoch, values))

    def grant(self, messages: int) -> None:
        self._credits += messages
