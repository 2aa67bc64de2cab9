"""The knobs of checkpointing, under Flink's names in `docs/configuration.md`."""

from __future__ import annotations

import enum
from dataclasses import dataclass


class CheckpointMode(enum.Enum):
    """Whether records behind a barrier wait until the checkpoint has passed."""

    EXACTLY_ONCE = "EXACTLY_ONCE"
    AT_LEAST_ONCE = "AT_LEAST_ONCE"


class Retention(enum.Enum):
    """What becomes of the checkpoints of a job that ends. A finished job never keeps any."""

    NO_EXTERNALIZED_CHECKPOINTS = "NO_EXTERNALIZED_CHECKPOINTS"
    """Deleted, however the job ends."""
    DELETE_ON_CANCELLATION = "DELETE_ON_CANCELLATION"
    """Kept when the job fails."""
    RETAIN_ON_CANCELLATION = "RETAIN_ON_CANCELLATION"
    """Kept when the job fails or is cancelled."""


class LostOutput(enum.Enum):
    """What to do with a checkpoint of which some output is lost and some is committed."""

    STOP = "stop"
    SKIP = "skip"
    REPEAT = "repeat"


@dataclass(frozen=True)
class CheckpointSettings:
    """When checkpoints are taken and kept. No interval: only when asked for."""

    interval_ms: int | None = None
    mode: CheckpointMode = CheckpointMode.EXACTLY_ONCE
    timeout_ms: int = 600_000
    retained: int = 1
    min_pause_ms: int = 0
    """The shortest time between the end of one checkpoint and the next that is due."""
    max_concurrent: int = 1
    tolerable_failures: int | None = None
    """Failures in a row that the job bears; None: any number."""
    retention: Retention = Retention.DELETE_ON_CANCELLATION
    overtakes_after_ms: int | None = None
    """When a checkpoint becomes unaligned, after its trigger; None: never."""
    orphan_grace_ms: int = 3_600_000
    """How long files that nothing refers to are left alone before they are deleted."""
    lost_output: LostOutput = LostOutput.STOP
