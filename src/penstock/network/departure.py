"""How long a slot that was told to leave has for it.

A loop that takes the message closes its functions, and may need a while for that. One that does
not take it is in the middle of user code that does not return: nothing is gained by waiting as long
for it.

    departure = Departure()
    departure.told(Leave(grace_ms=1000, notice_ms=500), now=7.0)
    departure.due          # 7.5
    departure.noticed()    # the loop has taken the message
    departure.due          # 8.0
"""

from __future__ import annotations

from penstock.network.messages import Leave


class Departure:
    """When a process has had its time. `told` is one thread's, `noticed` may be another's."""

    def __init__(self) -> None:
        self._leave_by: float | None = None
        self._notice_by: float | None = None
        self._noticed = False

    def told(self, leave: Leave, now: float) -> None:
        """The process has been told to leave; the last word counts. `now` in seconds."""
        self._leave_by = now + leave.grace_ms / 1000
        notice_ms = leave.grace_ms if leave.notice_ms is None else leave.notice_ms
        self._notice_by = now + notice_ms / 1000

    def noticed(self) -> None:
        """The loop knows: from now on it has all of the grace."""
        self._noticed = True

    @property
    def due(self) -> float | None:
        """When the process must end itself; None while it is wanted."""
        return self._leave_by if self._noticed else self._notice_by
