"""Functions that wait for something outside, and when to try again, by PyFlink's names.

>>> retry = AsyncRetryStrategy.fixed_delay(3, 100, None, lambda error: True)
>>> [retry.can_retry(attempt) for attempt in (1, 3, 4)], retry.get_backoff_time_millis(1)
([True, True, False], 100)
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any

from penstock.errors import ProgramError
from penstock.runtime.functions import Function

Predicate = Callable[[Any], bool]


class AsyncFunction(Function):
    """Asks something outside about every record, for many records at once.

    All calls of a slot run in one event loop of their own: what blocks in `async_invoke` blocks
    all of them.
    """

    @abstractmethod
    async def async_invoke(self, value: Any) -> list[Any]:
        """What to emit for `value`."""

    def timeout(self, value: Any) -> list[Any]:
        """What to emit in place of an answer that did not come in time; by default it fails."""
        raise TimeoutError("the asynchronous call did not end in time")


class AsyncRetryPredicate(ABC):
    """Which answers are worth another try."""

    @abstractmethod
    def result_predicate(self) -> Predicate | None:
        """True for a result that is no answer; None: every result is one."""

    @abstractmethod
    def exception_predicate(self) -> Predicate | None:
        """True for an exception that may pass; None: none does."""


class RetryPredicate(AsyncRetryPredicate):
    """Two functions as a predicate."""

    def __init__(
        self, result_predicate: Predicate | None, exception_predicate: Predicate | None
    ) -> None:
        self._result = result_predicate
        self._exception = exception_predicate

    def result_predicate(self) -> Predicate | None:
        return self._result

    def exception_predicate(self) -> Predicate | None:
        return self._exception


class AsyncRetryStrategy(ABC):
    """Whether and when to call again."""

    @abstractmethod
    def can_retry(self, current_attempts: int) -> bool:
        """Whether to try again after so many attempts."""

    @abstractmethod
    def get_backoff_time_millis(self, current_attempts: int) -> int:
        """How long to wait before that."""

    @abstractmethod
    def get_retry_predicate(self) -> AsyncRetryPredicate:
        """Which answers are worth it."""

    @staticmethod
    def no_restart() -> AsyncRetryStrategy:
        """Never again."""
        return NoRetryStrategy()

    @staticmethod
    def fixed_delay(
        max_attempts: int,
        backoff_time_millis: int,
        result_predicate: Predicate | None,
        exception_predicate: Predicate | None,
    ) -> AsyncRetryStrategy:
        """Up to `max_attempts` times again, always after the same time."""
        return FixedDelayRetryStrategy(
            max_attempts, backoff_time_millis, result_predicate, exception_predicate
        )

    @staticmethod
    def exponential_backoff(
        max_attempts: int,
        initial_delay: int,
        max_retry_delay: int,
        multiplier: float,
        result_predicate: Predicate | None,
        exception_predicate: Predicate | None,
    ) -> AsyncRetryStrategy:
        """Up to `max_attempts` times again, after `multiplier` times as long each time."""
        return ExponentialBackoffDelayRetryStrategy(
            max_attempts,
            initial_delay,
            max_retry_delay,
            multiplier,
            result_predicate,
            exception_predicate,
        )


class NoRetryStrategy(AsyncRetryStrategy):
    """Never again."""

    def can_retry(self, current_attempts: int) -> bool:
        return False

    def get_backoff_time_millis(self, current_attempts: int) -> int:
        return 0

    def get_retry_predicate(self) -> AsyncRetryPredicate:
        return RetryPredicate(None, None)


class FixedDelayRetryStrategy(AsyncRetryStrategy):
    """A number of times, after a fixed time."""

    def __init__(
        self,
        max_attempts: int,
        backoff_time_millis: int,
        result_predicate: Predicate | None,
        exception_predicate: Predicate | None,
    ) -> None:
        _positive("max_attempts", max_attempts)
        self._max_attempts = max_attempts
        self._backoff = backoff_time_millis
        self._predicate = RetryPredicate(result_predicate, exception_predicate)

    def can_retry(self, current_attempts: int) -> bool:
        return current_attempts <= self._max_attempts

    def get_backoff_time_millis(self, current_attempts: int) -> int:
        return self._backoff

    def get_retry_predicate(self) -> AsyncRetryPredicate:
        return self._predicate


class ExponentialBackoffDelayRetryStrategy(AsyncRetryStrategy):
    """A number of times, after ever longer times."""

    def __init__(
        self,
        max_attempts: int,
        initial_delay: int,
        max_retry_delay: int,
        multiplier: float,
        result_predicate: Predicate | None,
        exception_predicate: Predicate | None,
    ) -> None:
        _positive("max_attempts", max_attempts)
        _positive("multiplier", multiplier)
        self._max_attempts = max_attempts
        self._initial = initial_delay
        self._most = max_retry_delay
        self._multiplier = multiplier
        self._predicate = RetryPredicate(result_predicate, exception_predicate)

    def can_retry(self, current_attempts: int) -> bool:
        return current_attempts <= self._max_attempts

    def get_backoff_time_millis(self, current_attempts: int) -> int:
        delay = self._initial * self._multiplier ** (current_attempts - 1)
        return int(min(delay, self._most))

    def get_retry_predicate(self) -> AsyncRetryPredicate:
        return self._predicate


def _positive(name: str, value: float) -> None:
    if value <= 0:
        raise ProgramError(f"{name} must be positive, not {value}")
