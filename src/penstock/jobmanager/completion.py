"""Completing a checkpoint that every subtask has acknowledged, step by step.

1. Of a savepoint: the manifest of the copy is written. The copy exists, and is the user's.
2. The manifest of the checkpoint is written, among the job's own files. The checkpoint exists.
3. Slots hear of it.
4. What it covers is committed.
5. The checkpoint and the copy are marked: nobody needs to ask again what is committed.
6. Results that waited for it go to the client, whoever asked for a savepoint hears of it, and older
   checkpoints are deleted.

A driver that dies, or an attempt that ends, before step 2 has not taken the checkpoint. After it,
recovery begins with this checkpoint and carries out steps 4 and 5 again before the first record.
Older checkpoints stay until then: if the commit fails for good, there is one to go back to. Results
that the client was given would come again from there, so it is given none before.

    2: written --> it exists
          |  error: it may exist all the same
          +--> abandoned by a tombstone --> it never will
                   |  the storage does not answer
                   +--> nobody knows: that is decided before a restart

What comes back from the storage is looked at only while the attempt that asked still runs.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol, TypeVar

from penstock.checkpoint.metadata import CheckpointMetadata
from penstock.checkpoint.savepoints import SavepointLocation
from penstock.checkpoint.store import CheckpointStore
from penstock.errors import SupersededError
from penstock.jobmanager.committing import Commits, note_commit
from penstock.jobmanager.environment import Io

T = TypeVar("T")


class Attempt(Protocol):
    """The running attempt, as far as writing is concerned."""

    @property
    def number(self) -> int: ...

    def runs(self, number: int) -> bool:
        """Whether this is still the attempt, and it is running."""
        ...

    def fail(self, error: Exception) -> None: ...


@dataclass(frozen=True)
class Copy:
    """A savepoint that is to be written."""

    location: SavepointLocation
    metadata: CheckpointMetadata


@dataclass(frozen=True)
class Plan:
    """What is to come into existence."""

    metadata: CheckpointMetadata
    store: CheckpointStore | None
    """None: only the copy, of a job without checkpoints or one that has a newer one already."""
    copy: Copy | None = None


class Outcome(Protocol):
    """Whoever wants to know what became of it."""

    def exists(self, metadata: CheckpointMetadata) -> bool:
        """Step 3; False if nobody waits for it any more: then it is not gone on with."""
        ...

    def commits(self, metadata: CheckpointMetadata) -> None:
        """What it covers is being committed: the next checkpoint may begin."""
        ...

    def settled(self, metadata: CheckpointMetadata) -> None:
        """Step 6."""
        ...

    def given_up(self, checkpoint: int, reason: str) -> None:
        """It will never exist."""
        ...

    def doubtful(self, metadata: CheckpointMetadata, reason: str) -> None:
        """It may exist or not."""
        ...


class Completion:
    """Carries out the steps."""

    def __init__(self, io: Io, attempt: Attempt, commits: Commits, outcome: Outcome) -> None:
        self._io = io
        self._attempt = attempt
        self._commits = commits
        self._outcome = outcome

    def begin(self, plan: Plan) -> None:
        """Every subtask has acknowledged: begin with step 1."""

        def write() -> bool:
            copy, store = plan.copy, plan.store
            if copy is not None and not copy.location.complete(copy.metadata):
                return False
            return store is None or store.complete(plan.metadata)

        def done(created: bool | None, error: Exception | None) -> None:
            if created:
                self._exists(plan)
            elif isinstance(error, SupersededError):
                self._attempt.fail(error)
            else:
                reason = str(error) if error is not None else "it was abandoned"
                self._not_written(plan, reason)

        self._submit(write, done)

    def _not_written(self, plan: Plan, reason: str) -> None:
        if plan.store is None:
            self._outcome.given_up(plan.metadata.checkpoint, reason)
        else:
            # After an error the file may exist all the same; only a tombstone makes sure.
            self._decide(plan, plan.store, reason)

    def _decide(self, plan: Plan, store: CheckpointStore, reason: str) -> None:
        """A write whose outcome is unknown: make it fail for good, or learn that it succeeded."""
        checkpoint = plan.metadata.checkpoint

        def done(abandoned: bool | None, error: Exception | None) -> None:
            if isinstance(error, SupersededError):
                self._attempt.fail(error)
            elif error is not None:
                self._outcome.doubtful(plan.metadata, reason)
            elif abandoned:
                self._outcome.given_up(checkpoint, reason)
            else:
                self._exists(plan)

        self._submit(lambda: store.abandon(checkpoint), done)

    def _exists(self, plan: Plan) -> None:
        if self._outcome.exists(plan.metadata):
            self._commits.add(plan.metadata.committables)
            self.commit(lambda: self._outcome.settled(plan.metadata), lambda: _mark(plan))
            self._outcome.commits(plan.metadata)

    def commit(self, settled: Callable[[], None], mark: Callable[[], None] = lambda: None) -> None:
        """Steps 4 and 5 for all that is covered and not yet committed, then `settled`."""
        committables = self._commits.unconfirmed()
        if not any(committables.values()):
            settled()
            return

        def work() -> None:
            self._commits.commit(committables)
            mark()

        def done(_: None, error: Exception | None) -> None:
            if error is not None:
                # The next attempt commits again before it processes anything.
                self._attempt.fail(error)
                return
            self._commits.confirm(committables)
            settled()

        self._submit(work, done)

    def _submit(
        self, work: Callable[[], T], done: Callable[[T | None, Exception | None], None]
    ) -> None:
        number = self._attempt.number

        def heard(result: T | None, error: Exception | None) -> None:
            if self._attempt.runs(number):
                done(result, error)

        self._io.submit(work, heard)


def _mark(plan: Plan) -> None:
    """Mark what exists as committed."""
    if not any(plan.metadata.committables.values()):
        return
    if plan.copy is not None:
        note_commit(plan.copy.location.mark_committed)
    if plan.store is not None:
        checkpoint, store = plan.metadata.checkpoint, plan.store
        note_commit(lambda: store.mark_committed(checkpoint))
