"""Restart strategies as a program asks for them; each is a few keys of the configuration.

>>> RestartStrategies.fixed_delay_restart(3, 10_000).get_description()
'restart up to 3 times, 10000 ms after each failure'
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

from penstock.common import config_options as options
from penstock.common.configuration import Configuration

_KEYS: tuple[options.Option[Any], ...] = (
    options.RESTART_STRATEGY,
    options.RESTART_ATTEMPTS,
    options.RESTART_DELAY,
    options.EXPONENTIAL_INITIAL,
    options.EXPONENTIAL_LONGEST,
    options.EXPONENTIAL_MULTIPLIER,
    options.EXPONENTIAL_QUIET,
    options.EXPONENTIAL_JITTER,
    options.EXPONENTIAL_ATTEMPTS,
    options.FAILURE_RATE_FAILURES,
    options.FAILURE_RATE_INTERVAL,
    options.FAILURE_RATE_DELAY,
)


class RestartStrategyConfiguration(ABC):
    """What is to follow a failure."""

    @abstractmethod
    def get_description(self) -> str:
        """The strategy in words."""

    @abstractmethod
    def _set_keys(self, configuration: Configuration) -> None:
        """Set the keys that mean this strategy; none is set before."""

    def apply_to(self, configuration: Configuration) -> None:
        """Set this strategy, in place of any other."""
        for option in _KEYS:
            configuration.set(option, None)
        self._set_keys(configuration)


class RestartStrategies:
    """Makes restart strategies."""

    class NoRestartStrategyConfiguration(RestartStrategyConfiguration):
        """The first failure ends the job."""

        def get_description(self) -> str:
            return "no restart"

        def _set_keys(self, configuration: Configuration) -> None:
            configuration.set(options.RESTART_STRATEGY, "none")

    class FixedDelayRestartStrategyConfiguration(RestartStrategyConfiguration):
        """A number of restarts, each so many milliseconds after the failure."""

        def __init__(
            self, restart_attempts: int = 1, delay_between_attempts_interval: int = 1000
        ) -> None:
            self._attempts = restart_attempts
            self._delay = delay_between_attempts_interval

        def get_restart_attempts(self) -> int:
            """How many restarts there are at most."""
            return self._attempts

        def get_delay_between_attempts_interval(self) -> int:
            """Milliseconds between a failure and the next attempt."""
            return self._delay

        def get_description(self) -> str:
            return f"restart up to {self._attempts} times, {self._delay} ms after each failure"

        def _set_keys(self, configuration: Configuration) -> None:
            configuration.set(options.RESTART_STRATEGY, "fixed-delay")
            configuration.set(options.RESTART_ATTEMPTS, self._attempts)
            configuration.set(options.RESTART_DELAY, self._delay)

    class FailureRateRestartStrategyConfiguration(RestartStrategyConfiguration):
        """Restarts, unless so many milliseconds see more than a number of failures."""

        def __init__(
            self,
            max_failure_rate: int = 1,
            failure_interval: int = 60_000,
            delay_between_attempts_interval: int = 1000,
        ) -> None:
            self._failures = max_failure_rate
            self._interval = failure_interval
            self._delay = delay_between_attempts_interval

        def get_max_failure_rate(self) -> int:
            """How many failures an interval may see."""
            return self._failures

        def get_failure_interval(self) -> int:
            """The interval in milliseconds."""
            return self._interval

        def get_delay_between_attempts_interval(self) -> int:
            """Milliseconds between a failure and the next attempt."""
            return self._delay

        def get_description(self) -> str:
            return (
                f"restart {self._delay} ms after each failure, up to {self._failures} failures "
                f"in {self._interval} ms"
            )

        def _set_keys(self, configuration: Configuration) -> None:
            configuration.set(options.RESTART_STRATEGY, "failure-rate")
            configuration.set(options.FAILURE_RATE_FAILURES, self._failures)
            configuration.set(options.FAILURE_RATE_INTERVAL, self._interval)
            configuration.set(options.FAILURE_RATE_DELAY, self._delay)

    class ExponentialDelayRestartStrategyConfiguration(RestartStrategyConfiguration):
        """Restarts after growing delays, in milliseconds; a quiet time makes them short again."""

        def __init__(
            self,
            initial_backoff: int = 1_000,
            max_backoff: int = 60_000,
            backoff_multiplier: float = 1.5,
            reset_backoff_threshold: int = 3_600_000,
            jitter_factor: float = 0.1,
        ) -> None:
            self._initial = initial_backoff
            self._longest = max_backoff
            self._multiplier = backoff_multiplier
            self._quiet = reset_backoff_threshold
            self._jitter = jitter_factor

        def get_description(self) -> str:
            return (
                f"restart {self._initial} ms after a failure, {self._multiplier:g} times as long "
                f"after each further one, up to {self._longest} ms"
            )

        def _set_keys(self, configuration: Configuration) -> None:
            configuration.set(options.RESTART_STRATEGY, "exponential-delay")
            configuration.set(options.EXPONENTIAL_INITIAL, self._initial)
            configuration.set(options.EXPONENTIAL_LONGEST, self._longest)
            configuration.set(options.EXPONENTIAL_MULTIPLIER, self._multiplier)
            configuration.set(options.EXPONENTIAL_QUIET, self._quiet)
            configuration.set(options.EXPONENTIAL_JITTER, self._jitter)

    class FallbackRestartStrategyConfiguration(RestartStrategyConfiguration):
        """What holds when nothing is set: with checkpoints restarts, without them none."""

        def get_description(self) -> str:
            return "restart as configured by default"

        def _set_keys(self, configuration: Configuration) -> None:
            pass

    @staticmethod
    def no_restart() -> RestartStrategyConfiguration:
        """The first failure ends the job."""
        return RestartStrategies.NoRestartStrategyConfiguration()

    @staticmethod
    def fall_back_restart() -> RestartStrategyConfiguration:
        """What holds when nothing is set."""
        return RestartStrategies.FallbackRestartStrategyConfiguration()

    @staticmethod
    def fixed_delay_restart(
        restart_attempts: int, delay_between_attempts: int
    ) -> RestartStrategyConfiguration:
        """So many restarts at most, each so many milliseconds after the failure."""
        return RestartStrategies.FixedDelayRestartStrategyConfiguration(
            restart_attempts, delay_between_attempts
        )

    @staticmethod
    def failure_rate_restart(
        failure_rate: int, failure_interval: int, delay_interval: int
    ) -> RestartStrategyConfiguration:
        """Restarts after `delay_interval`, up to `failure_rate` failures in `failure_interval`."""
        return RestartStrategies.FailureRateRestartStrategyConfiguration(
            failure_rate, failure_interval, delay_interval
        )

    @staticmethod
    def exponential_delay_restart(
        initial_backoff: int,
        max_backoff: int,
        backoff_multiplier: float,
        reset_backoff_threshold: int,
        jitter_factor: float,
    ) -> RestartStrategyConfiguration:
        """Restarts after growing delays; a quiet time of `reset_backoff_threshold` resets them."""
        return RestartStrategies.ExponentialDelayRestartStrategyConfiguration(
            initial_backoff,
            max_backoff,
            backoff_multiplier,
            reset_backoff_threshold,
            jitter_factor,
        )
