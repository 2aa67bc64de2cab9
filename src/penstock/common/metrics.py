"""What was read of the metrics that user functions registered."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class MeterValue:
    """A meter: how many events there were, and how many a second lately."""

    count: int
    rate: float


@dataclass(frozen=True)
class DistributionValue:
    """A distribution: how its values lie. Without values all but the count are None."""

    count: int
    sum: float | None
    min: float | None
    max: float | None

    @property
    def mean(self) -> float | None:
        """The average of the values."""
        return None if self.sum is None else self.sum / self.count


@dataclass(frozen=True)
class MetricReading:
    """One metric of one operator in one subtask, as it was a moment ago.

    `name` has the groups in front, with dots between. `value` is an int for a counter, what the
    function returned for a gauge, else a `MeterValue` or a `DistributionValue`.
    """

    operator: str
    uid: str
    subtask: int
    name: str
    value: Any
