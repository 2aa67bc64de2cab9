"""A picture of a running job, for people and programs to look at."""

from __future__ import annotations

from dataclasses import dataclass, field

from penstock.checkpoint.history import CheckpointRecord
from penstock.common.job_status import JobStatus
from penstock.graph.execution_graph import SubtaskId
from penstock.network.messages import Starting, SubtaskMetrics, SubtaskReport


@dataclass(frozen=True)
class Progress:
    """Where a job is and how its subtasks are doing."""

    status: JobStatus
    attempt: int
    restarts: int
    """How often the job was started again after a failure."""
    completed_checkpoints: int
    failed_checkpoints: int
    last_checkpoint_ms: int | None
    metrics: dict[SubtaskId, SubtaskMetrics]
    slots: dict[int, tuple[str, int]]
    """Host and process id by slot."""
    strangers: int
    checkpoints: tuple[CheckpointRecord[SubtaskId], ...] = ()
    """The last checkpoints, oldest first."""
    reports: dict[SubtaskId, SubtaskReport] = field(default_factory=dict)
    """What user functions registered; see `penstock.jobmanager.reports`."""
    starting: dict[int, Starting] = field(default_factory=dict)
    """What each slot that restores state or opens functions is busy with."""
