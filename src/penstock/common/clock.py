"""Time, as an object that is handed in: the system's, or a simulation's."""

from __future__ import annotations

import time
from typing import Protocol


class Clock(Protocol):
    """What the runtime knows of time."""

    def now_ms(self) -> int:
        """Processing time: milliseconds since the epoch."""
        ...

    def monotonic_ns(self) -> int:
        """For measuring spans; never goes back."""
        ...

    def monotonic_ms(self) -> int:
        """For deadlines; never goes back, whatever is done to the machine's clock."""
        ...


class SystemClock:
    """The machine's own clock."""

    def now_ms(self) -> int:
        return time.time_ns() // 1_000_000

    def monotonic_ns(self) -> int:
        return time.monotonic_ns()

    def monotonic_ms(self) -> int:
        return time.monotonic_ns() // 1_000_000


def has_come(at_ms: int | None, wait_ms: int, now_ms: int) -> bool:
    """Whether the time has come for which somebody waits, at most for `wait_ms`.

    If it is further away than that, the machine's clock was set back: then it has come too.
    """
    return at_ms is not None and not now_ms < at_ms <= now_ms + wait_ms
