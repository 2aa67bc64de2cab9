"""Restart strategies: after a failure, how long to wait, or whether to give up.

A strategy is a setting; `begin` gives the memory that one job needs to follow it.

>>> restarts = FixedDelayRestart(attempts=1, delay=250).begin(lambda: 0.5)
>>> restarts.failed(now_ms=1_000), restarts.failed(now_ms=2_000)
(250, None)
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

Chance = Callable[[], float]
"""A number from 0 up to 1, evenly spread."""


class Restarts(Protocol):
    """Follows a strategy through the failures of one job."""

    def failed(self, now_ms: int) -> int | None:
        """The job failed now: milliseconds until the next attempt; None: give up.

        `now_ms` never goes back.
        """
        ...


class RestartStrategy(Protocol):
    """What is to follow a failure."""

    def begin(self, chance: Chance) -> Restarts:
        """The strategy for a job that has not failed yet."""
        ...


@dataclass(frozen=True)
class NoRestart:
    """The first failure ends the job."""

    def begin(self, chance: Chance) -> Restarts:
        return _FixedDelay(FixedDelayRestart(0, 0))


@dataclass(frozen=True)
class FixedDelayRestart:
    """Up to `attempts` restarts, each after the same delay."""

    attempts: int
    delay: int

    def begin(self, chance: Chance) -> Restarts:
        return _FixedDelay(self)


@dataclass(frozen=True)
class FailureRateRestart:
    """Restarts after `delay`, as long as no `interval` sees more than `failures`."""

    failures: int
    interval: int
    delay: int

    def begin(self, chance: Chance) -> Restarts:
        return _FailureRate(self)


@dataclass(frozen=True)
class ExponentialDelayRestart:
    """Restarts without end, each after a longer delay; a quiet time makes it short again.

    `jitter` is the part of a delay by which chance makes it longer or shorter, so that jobs that
    failed of one cause do not all come back at one moment. With `attempts` it gives up after so
    many restarts without a quiet time.
    """

    initial: int = 1_000
    longest: int = 60_000
    multiplier: float = 1.5
    jitter: float = 0.1
    quiet: int = 3_600_000
    attempts: int | None = None

    def begin(self, chance: Chance) -> Restarts:
        return _ExponentialDelay(self, chance)


class _FixedDelay:
    def __init__(self, strategy: FixedDelayRestart) -> None:
        self._delay = strategy.delay
        self._left = strategy.attempts

    def failed(self, now_ms: int) -> int | None:
        self._left -= 1
        return self._delay if self._left >= 0 else None


class _FailureRate:
    def __init__(self, strategy: FailureRateRestart) -> None:
        self._strategy = strategy
        self._times: deque[int] = deque()

    def failed(self, now_ms: int) -> int | None:
        strategy, times = self._strategy, self._times
        times.append(now_ms)
        while now_ms - times[0] > strategy.interval:
            times.popleft()
        return strategy.delay if len(times) <= strategy.failures else None


class _ExponentialDelay:
    def __init__(self, strategy: ExponentialDelayRestart, chance: Chance) -> None:
        self._strategy = strategy
        self._chance = chance
        self._delay = float(strategy.initial)
        self._restarts = 0
        self._restarted_ms: int | None = None

    def failed(self, now_ms: int) -> int | None:
        strategy = self._strategy
        if self._restarted_ms is not None and now_ms - self._restarted_ms >= strategy.quiet:
            self._delay, self._restarts = float(strategy.initial), 0
        self._restarts += 1
        if strategy.attempts is not None and self._restarts > strategy.attempts:
            return None
        swing = strategy.jitter * (2 * self._chance() - 1)
        delay = min(round(self._delay * (1 + swing)), strategy.longest)
        self._delay = min(self._delay * strategy.multiplier, strategy.longest)
        self._restarted_ms = now_ms + delay
        return delay
