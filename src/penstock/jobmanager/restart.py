"""Restart strategies: after a failure, how long to wait, or whether to give up."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol


class RestartStrategy(Protocol):
    """Decides by how often the job has failed so far."""

    def delay_ms(self, failures: int) -> int | None:
        """The delay before the next attempt after failure number `failures`; None: give up."""
        ...


@dataclass(frozen=True)
class NoRestart:
    """The first failure ends the job."""

    def delay_ms(self, failures: int) -> int | None:
        return None


@dataclass(frozen=True)
class FixedDelayRestart:
    """Up to `attempts` restarts, each after the same delay."""

    attempts: int
    delay: int

    def delay_ms(self, failures: int) -> int | None:
        return self.delay if failures <= self.attempts else None
