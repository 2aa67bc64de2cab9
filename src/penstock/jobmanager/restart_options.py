"""The restart strategy that a configuration asks for."""

from __future__ import annotations

from collections.abc import Mapping

from penstock.common import config_options as options
from penstock.errors import ConfigurationError
from penstock.jobmanager.restart import (
    ExponentialDelayRestart,
    FailureRateRestart,
    FixedDelayRestart,
    NoRestart,
    RestartStrategy,
)


def restart_strategy(values: Mapping[str, str], checkpoints: bool) -> RestartStrategy:
    """What `restart-strategy.*` says; where it says nothing, restarts if there are checkpoints."""
    kind = options.RESTART_STRATEGY.read(values)
    if kind is None:
        # Without checkpoints a restart begins all over again, and doubles what is already out.
        kind = "exponential-delay" if checkpoints else "none"
    if kind == "fixed-delay":
        return FixedDelayRestart(
            options.RESTART_ATTEMPTS.read(values), options.RESTART_DELAY.read(values)
        )
    if kind == "failure-rate":
        return FailureRateRestart(
            options.FAILURE_RATE_FAILURES.read(values),
            options.FAILURE_RATE_INTERVAL.read(values),
            options.FAILURE_RATE_DELAY.read(values),
        )
    if kind == "exponential-delay":
        return _exponential(values)
    return NoRestart()


def _exponential(values: Mapping[str, str]) -> RestartStrategy:
    strategy = ExponentialDelayRestart(
        options.EXPONENTIAL_INITIAL.read(values),
        options.EXPONENTIAL_LONGEST.read(values),
        options.EXPONENTIAL_MULTIPLIER.read(values),
        options.EXPONENTIAL_JITTER.read(values),
        options.EXPONENTIAL_QUIET.read(values),
        options.EXPONENTIAL_ATTEMPTS.read(values),
    )
    _require(options.EXPONENTIAL_MULTIPLIER.key, strategy.multiplier >= 1, "at least 1")
    _require(options.EXPONENTIAL_JITTER.key, 0 <= strategy.jitter <= 1, "between 0 and 1")
    _require(
        options.EXPONENTIAL_LONGEST.key,
        strategy.longest >= strategy.initial,
        f"at least {options.EXPONENTIAL_INITIAL.key}",
    )
    return strategy


def _require(key: str, holds: bool, what: str) -> None:
    if not holds:
        raise ConfigurationError(f"{key}: expected {what}")
