"""The checkpoint settings that a configuration asks for."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from penstock.checkpoint.settings import CheckpointMode, CheckpointSettings, LostOutput, Retention
from penstock.common import config_options as options
from penstock.errors import ConfigurationError

SHORTEST_INTERVAL_MS = 10


def checkpoint_settings(values: Mapping[str, str]) -> CheckpointSettings:
    """What `execution.checkpointing.*` says; ConfigurationError for what makes no sense."""
    interval = options.CHECKPOINT_INTERVAL.read(values)
    if interval is not None and interval < SHORTEST_INTERVAL_MS:
        raise ConfigurationError(
            f"{options.CHECKPOINT_INTERVAL.key}: {interval} ms is shorter than the minimum of "
            f"{SHORTEST_INTERVAL_MS} ms"
        )
    mode = CheckpointMode(options.CHECKPOINT_MODE.read(values))
    settings = CheckpointSettings(
        interval,
        mode,
        options.CHECKPOINT_TIMEOUT.read(values),
        options.CHECKPOINTS_RETAINED.read(values),
        options.CHECKPOINT_MIN_PAUSE.read(values),
        options.CHECKPOINTS_CONCURRENT.read(values),
        options.CHECKPOINT_FAILURES_TOLERABLE.read(values),
        Retention(options.CHECKPOINT_RETENTION.read(values)),
        _overtakes_after_ms(values, mode),
        options.ORPHAN_GRACE.read(values),
        LostOutput(options.LOST_OUTPUT.read(values)),
    )
    _at_least(options.CHECKPOINT_TIMEOUT, settings.timeout_ms, 10)
    _at_least(options.ORPHAN_GRACE, settings.orphan_grace_ms, 1000)
    _at_least(options.CHECKPOINTS_RETAINED, settings.retained, 1)
    _at_least(options.CHECKPOINTS_CONCURRENT, settings.max_concurrent, 1)
    if settings.tolerable_failures is not None:
        _at_least(options.CHECKPOINT_FAILURES_TOLERABLE, settings.tolerable_failures, 0)
    return settings


def _overtakes_after_ms(values: Mapping[str, str], mode: CheckpointMode) -> int | None:
    if not options.CHECKPOINT_UNALIGNED.read(values):
        return None
    if mode is not CheckpointMode.EXACTLY_ONCE:
        raise ConfigurationError(
            f"{options.CHECKPOINT_UNALIGNED.key}: with {options.CHECKPOINT_MODE.key} {mode.value} "
            "no channel waits for another, so there is nothing to overtake; leave one of them out"
        )
    return options.CHECKPOINT_ALIGNED_TIMEOUT.read(values)


def _at_least(option: options.Option[Any], value: int, least: int) -> None:
    if value < least:
        raise ConfigurationError(f"{option.key}: {value} is less than {least}")
