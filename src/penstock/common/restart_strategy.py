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
