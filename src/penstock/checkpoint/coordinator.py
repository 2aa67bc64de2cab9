"""The checkpoint coordinator: when to trigger, when a checkpoint is complete, what may go.

It decides and does no I/O, so it is tested by enumeration: the JobMaster calls it with what
happened and carries out what it answers. One checkpoint is under way at a time:

    idle --trigger--> pending --all acknowledged--> writing --created--> complete
                        |  declined, expired           | not created, failed
                        +--------> aborted <-----------+
"""

from __future__ import annotations

import enum
from collections.abc import Hashable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Generic, TypeVar

from penstock.checkpoint.handles import SubtaskSnapshot

S = TypeVar("S", bound=Hashable)


class CheckpointMode(enum.Enum):
    """Whether records behind a barrier wait until the checkpoint has passed."""

    EXACTLY_ONCE = "EXACTLY_ONCE"
    AT_LEAST_ONCE = "AT_LEAST_ONCE"


@dataclass(frozen=True)
class CheckpointSettings:
    """The knobs. No interval: checkpoints only when asked for."""

    interval_ms: int | None = None
    mode: CheckpointMode = CheckpointMode.EXACTLY_ONCE
    timeout_ms: int = 600_000
    retained: int = 1


@dataclass
class PendingCheckpoint(Generic[S]):
    """A checkpoint under way."""

    id: int
    triggered_ms: int
    waiting: set[S]
    acknowledged: dict[S, SubtaskSnapshot] = field(default_factory=dict)
    writing: bool = False


@dataclass(frozen=True)
class CheckpointCounts:
    """What happened so far, for people to look at."""

    completed: int = 0
    failed: int = 0
    last_duration_ms: int | None = None
    last_size: int | None = None
    last_failure: str | None = None


class CheckpointCoordinator(Generic[S]):
    """Decides about the checkpoints of one job, over all of its attempts."""

    def __init__(self, settings: CheckpointSettings, subtasks: Iterable[S], first_id: int) -> None:
        self._settings = settings
        self._subtasks = frozenset(subtasks)
        self._next_id = first_id
        self._next_due_ms: int | None = None
        self.confirmed = 0
        """The newest complete checkpoint; 0 when there is none."""
        self.pending: PendingCheckpoint[S] | None = None
        self.counts = CheckpointCounts()

    def attempt_started(self, now_ms: int, confirmed: int) -> None:
        """A new attempt runs, restored from `confirmed`."""
        self.confirmed = confirmed
        self.pending = None
        if self._settings.interval_ms is not None:
            self._next_due_ms = now_ms + self._settings.interval_ms

    def attempt_ended(self) -> int | None:
        """Nothing triggers any more; the id of a checkpoint that was under way, now undecided."""
        undecided = self.pending.id if self.pending is not None else None
        if undecided is not None:
            self._failed("the attempt ended")
        self.pending = None
        self._next_due_ms = None
        return undecided

    def stop_triggering(self) -> None:
        """No more checkpoints are due in this attempt: the last one is complete."""
        self._next_due_ms = None

    def next_wakeup_ms(self) -> int | None:
        """When `due` or `expired` may change their answer."""
        if self.pending is None:
            return self._next_due_ms
        if self.pending.writing:
            return None
        return self.pending.triggered_ms + self._settings.timeout_ms

    def due(self, now_ms: int) -> bool:
        return (
            self.pending is None and self._next_due_ms is not None and now_ms >= self._next_due_ms
        )

    def expired(self, now_ms: int) -> bool:
        pending = self.pending
        return (
            pending is not None
            and not pending.writing
            and now_ms >= pending.triggered_ms + self._settings.timeout_ms
        )

    def trigger(self, now_ms: int) -> PendingCheckpoint[S]:
        """Start the next checkpoint. Ids only ever grow, across attempts too."""
        if self._settings.interval_ms is not None:
            self._next_due_ms = now_ms + self._settings.interval_ms
        self.pending = PendingCheckpoint(self._next_id, now_ms, set(self._subtasks))
        self._next_id += 1
        return self.pending

    def acknowledge(self, checkpoint: int, subtask: S, snapshot: SubtaskSnapshot) -> bool:
        """Note an acknowledgement; True when it was the last one: the metadata is to be written."""
        pending = self.pending
        if pending is None or pending.id != checkpoint or subtask not in pending.waiting:
            return False
        pending.waiting.discard(subtask)
        pending.acknowledged[subtask] = snapshot
        pending.writing = not pending.waiting
        return pending.writing

    def abort(self, checkpoint: int, reason: str) -> bool:
        """Give the pending checkpoint up; False if it is not the pending one (any more)."""
        if self.pending is None or self.pending.id != checkpoint:
            return False
        self.pending = None
        self._failed(reason)
        return True

    def _failed(self, reason: str) -> None:
        counts = self.counts
        self.counts = CheckpointCounts(
            counts.completed,
            counts.failed + 1,
            counts.last_duration_ms,
            counts.last_size,
            reason,
        )

    def completed(self, checkpoint: int, now_ms: int) -> bool:
        """The metadata exists; False if this attempt is not waiting for it (any more)."""
        pending = self.pending
        if pending is None or pending.id != checkpoint:
            return False
        self.pending = None
        self.confirmed = checkpoint
        self.counts = CheckpointCounts(
            self.counts.completed + 1,
            self.counts.failed,
            now_ms - pending.triggered_ms,
            sum(snapshot.size for snapshot in pending.acknowledged.values()),
            self.counts.last_failure,
        )
        return True


def unreferenced(
    references: Mapping[int, frozenset[str]], retained: int
) -> dict[int, frozenset[str]]:
    """Which checkpoints to discard, each with the segments that none of those kept refers to."""
    kept = sorted(references, reverse=True)[:retained]
    needed = frozenset().union(*(references[checkpoint] for checkpoint in kept))
    gone: dict[int, frozenset[str]] = {}
    for checkpoint in sorted(set(references) - set(kept)):
        already = frozenset().union(*gone.values())
        gone[checkpoint] = references[checkpoint] - needed - already
    return gone
