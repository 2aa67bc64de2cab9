"""Where a subtask's time goes: every moment is busy, backpressured or idle."""

from __future__ import annotations

import enum
from dataclasses import dataclass, field


class Activity(enum.Enum):
    """What a subtask's time is spent on."""

    BUSY = 0
    BACKPRESSURED = 1
    IDLE = 2


@dataclass
class Accounting:
    """Exact time per activity: every moment since `start` belongs to one of them."""

    since: int
    activity: Activity = Activity.IDLE
    totals: list[int] = field(default_factory=lambda: [0, 0, 0])

    def enter(self, activity: Activity, now: int) -> None:
        self.totals[self.activity.value] += now - self.since
        self.activity, self.since = activity, now

    def upto(self, now: int) -> list[int]:
        """The totals with the activity that is under way."""
        totals = list(self.totals)
        totals[self.activity.value] += max(0, now - self.since)
        return totals
