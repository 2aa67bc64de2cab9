"""What became of the last checkpoints, for people and programs to look at."""

from __future__ import annotations

import enum
from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Generic, TypeVar

from penstock.checkpoint.handles import SubtaskSnapshot

S = TypeVar("S")

KEPT = 10
"""How many checkpoints the history holds, as many as Flink's."""


class CheckpointStatus(enum.Enum):
    """How a checkpoint went."""

    IN_PROGRESS = "IN_PROGRESS"
    COMPLETED = "COMPLETED"
    FAILED = "FAILED"


@dataclass(frozen=True)
class SubtaskCheckpoint:
    """A subtask's part of a checkpoint."""

    sync_ms: float
    """Between two records: the stream stood still."""
    async_ms: float
    """Beside the stream, until everything was stored."""
    alignment_ms: float
    """From the first barrier to the last one."""
    state_size: int
    """Bytes that a restore would read."""
    incremental_size: int
    """Bytes that this checkpoint wrote."""
    in_flight_size: int = 0
    """Bytes that were under way in channels and are part of it, as it was unaligned."""

    @staticmethod
    def of(snapshot: SubtaskSnapshot) -> SubtaskCheckpoint:
        return SubtaskCheckpoint(
            snapshot.sync_ns / 1e6,
            snapshot.async_ns / 1e6,
            snapshot.alignment_ns / 1e6,
            snapshot.state_size(),
            snapshot.size,
            sum(handle.size for handle in snapshot.in_flight),
        )


@dataclass(frozen=True)
class CheckpointRecord(Generic[S]):
    """One checkpoint."""

    id: int
    status: CheckpointStatus
    triggered_ms: int
    """When, in milliseconds since the epoch."""
    manual: bool = False
    """Somebody asked for it."""
    duration_ms: int | None = None
    reason: str | None = None
    """Why it failed."""
    subtasks: Mapping[S, SubtaskCheckpoint] = field(default_factory=dict)
    """Those that have done their part."""

    @property
    def state_size(self) -> int:
        return sum(part.state_size for part in self.subtasks.values())

    @property
    def incremental_size(self) -> int:
        return sum(part.incremental_size for part in self.subtasks.values())

    @property
    def in_flight_size(self) -> int:
        return sum(part.in_flight_size for part in self.subtasks.values())


@dataclass(frozen=True)
class CheckpointCounts:
    """What happened so far."""

    completed: int = 0
    failed: int = 0
    last_duration_ms: int | None = None
    last_size: int | None = None
    """Bytes that the last complete one wrote."""
    last_failure: str | None = None


class CheckpointHistory(Generic[S]):
    """The last checkpoints that ended, and the counts of all."""

    def __init__(self) -> None:
        self._ended: deque[CheckpointRecord[S]] = deque(maxlen=KEPT)
        self.counts = CheckpointCounts()

    def ended(self, record: CheckpointRecord[S]) -> None:
        self._ended.append(record)
        counts = self.counts
        if record.status is CheckpointStatus.COMPLETED:
            self.counts = CheckpointCounts(
                counts.completed + 1,
                counts.failed,
                record.duration_ms,
                record.incremental_size,
                counts.last_failure,
            )
        else:
            self.counts = CheckpointCounts(
                counts.completed,
                counts.failed + 1,
                counts.last_duration_ms,
                counts.last_size,
                record.reason,
            )

    def records(self) -> list[CheckpointRecord[S]]:
        """Oldest first."""
        return list(self._ended)
