"""The checkpoint coordinator: when to trigger, when a checkpoint is complete, what may go.

It decides and does no I/O, so it is tested by enumeration: the JobMaster calls it with what
happened and carries out what it answers. Each checkpoint takes this way:

    triggered --> pending --all acknowledged--> writing --created--> complete
                     |  declined, expired           | not created, failed
                     +--------> aborted <-----------+

Several may be under way. When one is complete the older ones are given up: nobody would ever
restore from them. Times are the JobMaster's monotonic milliseconds.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Generic, TypeVar

from penstock.checkpoint.handles import SubtaskSnapshot
from penstock.checkpoint.history import (
    CheckpointCounts,
    CheckpointHistory,
    CheckpointRecord,
    CheckpointStatus,
    SubtaskCheckpoint,
)
from penstock.checkpoint.settings import CheckpointMode, CheckpointSettings

__all__ = [
    "CheckpointCoordinator",
    "CheckpointMode",
    "CheckpointSettings",
    "PendingCheckpoint",
    "unreferenced",
]

S = TypeVar("S", bound=Hashable)


@dataclass
class PendingCheckpoint(Generic[S]):
    """A checkpoint under way."""

    id: int
    triggered_ms: int
    wall_ms: int
    base: int
    """The newest complete checkpoint when this one was triggered: its state builds on that."""
    manual: bool
    waiting: set[S]
    acknowledged: dict[S, SubtaskSnapshot] = field(default_factory=dict)
    writing: bool = False
    savepoint: bool = False
    """Nobody restores from it or builds upon it."""


class CheckpointCoordinator(Generic[S]):
    """Decides about the checkpoints of one job, over all of its attempts."""

    def __init__(self, settings: CheckpointSettings, subtasks: Iterable[S], first_id: int) -> None:
        self._settings = settings
        self._subtasks = frozenset(subtasks)
        self._next_id = first_id
        self._next_due_ms: int | None = None
        self._failures_in_row = 0
        self._history: CheckpointHistory[S] = CheckpointHistory()
        self.confirmed = 0
        """The newest complete checkpoint; 0 when there is none."""
        self.pending: dict[int, PendingCheckpoint[S]] = {}
        """Those under way, oldest first."""

    @property
    def counts(self) -> CheckpointCounts:
        return self._history.counts

    def history(self, now_ms: int) -> tuple[CheckpointRecord[S], ...]:
        """The last checkpoints, oldest first, those under way at the end."""
        under_way = [
            self._record(pending, CheckpointStatus.IN_PROGRESS, now_ms)
            for pending in self.pending.values()
        ]
        return (*self._history.records(), *under_way)

    # --- attempts -----------------------------------------------------------------------------

    def attempt_started(self, now_ms: int, confirmed: int) -> None:
        """A new attempt runs, restored from `confirmed`."""
        self.confirmed = confirmed
        self.pending = {}
        self._failures_in_row = 0
        self._next_id = max(self._next_id, confirmed + 1)
        if self._settings.interval_ms is not None:
            self._next_due_ms = now_ms + self._settings.interval_ms

    def lay_out(self, subtasks: Iterable[S]) -> None:
        """From the next attempt on these take part in checkpoints."""
        self._subtasks = frozenset(subtasks)

    def attempt_ended(self, now_ms: int) -> list[int]:
        """Nothing triggers any more; the ids of checkpoints under way, which are now undecided."""
        undecided = list(self.pending)
        for pending in self.pending.values():
            self._failed(pending, "the attempt ended", now_ms)
        self.pending = {}
        self._next_due_ms = None
        return undecided

    def stop_triggering(self) -> None:
        """No more checkpoints are due in this attempt: the last one is complete."""
        self._next_due_ms = None

    # --- when ---------------------------------------------------------------------------------

    def next_wakeup_ms(self) -> int | None:
        """When `due` or `expired` may change their answer."""
        times = [
            pending.triggered_ms + self._settings.timeout_ms
            for pending in self.pending.values()
            if not pending.writing
        ]
        if self._next_due_ms is not None and self.has_room():
            times.append(self._next_due_ms)
        return min(times, default=None)

    def due(self, now_ms: int) -> bool:
        return self._next_due_ms is not None and now_ms >= self._next_due_ms and self.has_room()

    def has_room(self) -> bool:
        """Whether one more may be under way."""
        settings = self._settings
        # A pause between checkpoints is one in which none is under way; and a barrier overtakes
        # records, not other barriers.
        single = settings.min_pause_ms or settings.overtakes_after_ms is not None
        return len(self.pending) < (1 if single else settings.max_concurrent)

    def expired(self, now_ms: int) -> list[int]:
        """Checkpoints that have taken too long. While the manifest is written none expires."""
        return [
            pending.id
            for pending in self.pending.values()
            if not pending.writing and now_ms >= pending.triggered_ms + self._settings.timeout_ms
        ]

    def trigger(
        self, now_ms: int, wall_ms: int = 0, manual: bool = False, savepoint: bool = False
    ) -> PendingCheckpoint[S]:
        """Start the next checkpoint. Ids only ever grow, across attempts too."""
        if self._settings.interval_ms is not None and not manual:
            self._next_due_ms = now_ms + self._settings.interval_ms
        pending = PendingCheckpoint(
            self._next_id,
            now_ms,
            wall_ms,
            self.confirmed,
            manual,
            set(self._subtasks),
            savepoint=savepoint,
        )
        self.pending[pending.id] = pending
        self._next_id += 1
        return pending

    def _pause(self, now_ms: int) -> None:
        if self._next_due_ms is not None:
            self._next_due_ms = max(self._next_due_ms, now_ms + self._settings.min_pause_ms)

    # --- what happened ------------------------------------------------------------------------

    def acknowledge(self, checkpoint: int, subtask: S, snapshot: SubtaskSnapshot) -> bool:
        """Note an acknowledgement; True when it was the last one: the metadata is to be written."""
        pending = self.pending.get(checkpoint)
        if pending is None or subtask not in pending.waiting:
            return False
        pending.waiting.discard(subtask)
        pending.acknowledged[subtask] = snapshot
        pending.writing = not pending.waiting
        return pending.writing

    def abort(self, checkpoint: int, reason: str, now_ms: int, counts: bool = True) -> bool:
        """Give a checkpoint up; False if it is not under way (any more).

        It counts among the failures that the job may bear unless told otherwise.
        """
        pending = self.pending.pop(checkpoint, None)
        if pending is None:
            return False
        if counts:
            self._failures_in_row += 1
        self._failed(pending, reason, now_ms)
        self._pause(now_ms)
        return True

    def too_many_failures(self) -> bool:
        """Whether more checkpoints in a row have failed than the job bears."""
        most = self._settings.tolerable_failures
        return most is not None and self._failures_in_row > most

    def completed(self, checkpoint: int, now_ms: int) -> bool:
        """The metadata exists; False if this attempt is not waiting for it (any more)."""
        pending = self.pending.pop(checkpoint, None)
        if pending is None:
            return False
        self.confirmed = max(self.confirmed, checkpoint)
        self._failures_in_row = 0
        self._history.ended(self._record(pending, CheckpointStatus.COMPLETED, now_ms))
        self._pause(now_ms)
        return True

    def subsumed(self) -> list[int]:
        """Checkpoints under way that are older than a complete one: to be given up."""
        return [
            checkpoint
            for checkpoint, pending in self.pending.items()
            if checkpoint < self.confirmed and not pending.savepoint
        ]

    def needed(self) -> int | None:
        """Complete checkpoints from this one on must stay: one under way may build on them.

        On which exactly depends on how far each subtask had heard when it took its snapshot.
        """
        return min((pending.base for pending in self.pending.values()), default=None)

    def undecided(self) -> int:
        """Checkpoints from this one on are under way, or yet to come."""
        return min(self.pending, default=self._next_id)

    def _failed(self, pending: PendingCheckpoint[S], reason: str, now_ms: int) -> None:
        self._history.ended(self._record(pending, CheckpointStatus.FAILED, now_ms, reason))

    def _record(
        self,
        pending: PendingCheckpoint[S],
        status: CheckpointStatus,
        now_ms: int,
        reason: str | None = None,
    ) -> CheckpointRecord[S]:
        parts = {s: SubtaskCheckpoint.of(part) for s, part in pending.acknowledged.items()}
        duration = now_ms - pending.triggered_ms
        return CheckpointRecord(
            pending.id, status, pending.wall_ms, pending.manual, duration, reason, parts
        )


def unreferenced(
    references: Mapping[int, frozenset[str]], retained: int, needed: int | None = None
) -> dict[int, frozenset[str]]:
    """Which checkpoints to discard, each with the segments that none of those kept refers to.

    Kept are the newest `retained`, and all from `needed` on.
    """
    kept = set(sorted(references, reverse=True)[:retained])
    if needed is not None:
        kept.update(checkpoint for checkpoint in references if checkpoint >= needed)
    in_use = frozenset().union(*(references[checkpoint] for checkpoint in kept))
    gone: dict[int, frozenset[str]] = {}
    for checkpoint in sorted(set(references) - kept):
        already = frozenset().union(*gone.values())
        gone[checkpoint] = references[checkpoint] - in_use - already
    return gone
