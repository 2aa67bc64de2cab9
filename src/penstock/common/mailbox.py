"""A loop's mailbox: what other threads want done, done by the loop itself."""

from __future__ import annotations

import queue
from collections.abc import Callable


class Mailbox:
    """Takes actions from any thread; the loop runs them one after another."""

    def __init__(self, wake: Callable[[], None]) -> None:
        """`wake` lets the loop look, if it sleeps; called from any thread."""
        self._wake = wake
        self._actions: queue.SimpleQueue[Callable[[], None]] = queue.SimpleQueue()

    def put(self, action: Callable[[], None]) -> None:
        """Have the loop call `action`."""
        self._actions.put(action)
        self._wake()

    def run(self) -> None:
        """On the loop: call all that there is."""
        while True:
            try:
                action = self._actions.get_nowait()
            except queue.Empty:
                return
            action()
