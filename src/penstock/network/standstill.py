"""A loop that stands still: somebody else notices, and says where it stands.

standstill = Standstill("the JobMaster of 'counts'", after_ms=5000)
standstill.works()       # in the loop: it has woken up
standstill.rests()       # in the loop: it is about to sleep
standstill.look()        # in another thread, now and then
"""

from __future__ import annotations

import logging
import sys
import threading
import traceback

from penstock.common.clock import Clock

log = logging.getLogger(__name__)

_FRAMES = 8
"""How much of the stack is shown: what a user wrote is at its end."""


class Standstill:
    """Watches one loop; a long stop is reported after its time, after twice that, and so on."""

    def __init__(self, name: str, after_ms: int, clock: Clock) -> None:
        self._name = name
        self._after_ms = after_ms
        self._clock = clock
        self._thread: int | None = None
        self._since_ms: int | None = None
        self._report_after_ms = after_ms

    def works(self) -> None:
        self._thread = threading.get_ident()
        self._report_after_ms = self._after_ms
        self._since_ms = self._clock.monotonic_ms()

    def rests(self) -> None:
        self._since_ms = None

    def look(self) -> None:
        """Report the loop if it has been at one thing for too long."""
        since, thread = self._since_ms, self._thread
        if since is None or thread is None:
            return
        stands_ms = self._clock.monotonic_ms() - since
        if stands_ms < self._report_after_ms:
            return
        self._report_after_ms = 2 * stands_ms
        frame = sys._current_frames().get(thread)
        stack = "".join(traceback.format_stack(frame)[-_FRAMES:]) if frame is not None else ""
        log.warning(
            "%s has stood still for %.0f s; its slots wait for it. It is here:\n%s",
            self._name,
            stands_ms / 1000,
            stack,
        )
