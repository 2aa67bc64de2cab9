"""The log of the client library, as `logging` gets it: each thing once a minute.

A client says several times a second that a broker is away. Whoever reads the log wants to know that
it is, and how often it was said.
"""

from __future__ import annotations

import logging
import re
import time
from collections.abc import Callable

_EVERY_SECONDS = 60.0
_MOST_KINDS = 1000
_NUMBERS = re.compile(r"\d+")


class OncePerMinute(logging.Filter):
    """Lets a message pass, and then none for a minute that differs from it in numbers only."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        super().__init__()
        self._clock = clock
        self._kinds: dict[str, tuple[float, int]] = {}
        """When one of a kind passed, and how many did not since then."""

    def filter(self, record: logging.LogRecord) -> bool:
        text, now = record.getMessage(), self._clock()
        kind = _NUMBERS.sub("#", text)
        passed, held = self._kinds.get(kind, (-_EVERY_SECONDS, 0))
        if now - passed < _EVERY_SECONDS:
            self._kinds[kind] = (passed, held + 1)
            return False
        if len(self._kinds) >= _MOST_KINDS:
            self._kinds.clear()
        self._kinds[kind] = (now, 0)
        if held:
            record.msg, record.args = f"{text} ({held} more like this since the last)", ()
        return True
