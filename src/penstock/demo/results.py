"""What has come out of the demo so far, and whether anything came twice."""

from __future__ import annotations

from collections import Counter
from typing import Any

from penstock.demo.payments import PAYMENTS, expected


class Results:
    """Counts per merchant and minute, and the payments that came too late."""

    def __init__(self) -> None:
        self.counts: Counter[tuple[str, int]] = Counter()
        self.late: list[dict[str, Any]] = []
        self.twice = 0

    def add(self, result: tuple[Any, ...]) -> None:
        if result[0] == "late":
            self.late.append(result[1])
            return
        _, merchant, minute, count = result
        if (merchant, minute) in self.counts:
            self.twice += 1
        self.counts[merchant, minute] = count

    @property
    def final(self) -> int:
        """Payments that are in a finished minute or came too late for theirs."""
        return sum(self.counts.values()) + len(self.late)

    def per_minute(self, minute: int) -> int:
        return sum(count for (_, at), count in self.counts.items() if at == minute)

    def exact(self) -> bool:
        """Whether every minute is there once and says what a plain loop says."""
        ids = {payment["id"] for payment in self.late}
        once = not self.twice and len(ids) == len(self.late)
        return once and self.final == PAYMENTS and self.counts == expected(self.late)
