"""Bringing a checkpoint into existence: its manifest is written, last of all.

    written --> it exists
       |  error: it may exist all the same
       +--> abandoned by a tombstone --> it never will
                |  the storage does not answer
                +--> nobody knows: that is decided before a restart

What comes back from the storage is looked at only while the attempt that asked still runs.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol, TypeVar

from penstock.checkpoint.metadata import CheckpointMetadata
from penstock.checkpoint.savepoints import SavepointLocation
from penstock.checkpoint.store import CheckpointStore
from penstock.errors import SupersededError
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


class Outcome(Protocol):
    """Whoever wants to know what became of it. One of these is called."""

    def completed(self, metadata: CheckpointMetadata) -> None:
        """The checkpoint exists, and with it what it covers."""
        ...

    def savepoint_completed(self, metadata: CheckpointMetadata) -> None:
        """The savepoint exists; the job goes on."""
        ...

    def given_up(self, checkpoint: int, reason: str) -> None:
        """It will never exist."""
        ...

    def doubtful(self, metadata: CheckpointMetadata, reason: str) -> None:
        """It may exist or not."""
        ...


class Completion:
    """Writes the manifests of checkpoints and savepoints."""

    def __init__(self, io: Io, attempt: Attempt, outcome: Outcome) -> None:
        self._io = io
        self._attempt = attempt
        self._outcome = outcome

    def checkpoint(self, store: CheckpointStore, metadata: CheckpointMetadata) -> None:
        """Write a checkpoint of the job's own."""
        self._write(store, metadata, lambda: store.complete(metadata))

    def stop(
        self,
        store: CheckpointStore,
        metadata: CheckpointMetadata,
        location: SavepointLocation,
    ) -> None:
        """Write the savepoint that stops the job, which is a checkpoint of its own as well.

        What is committed then must be covered if the job has to restart after all.
        """
        own = location.as_checkpoint(metadata)
        self._write(store, own, lambda: location.complete(metadata) and store.complete(own))

    def savepoint(
        self, metadata: CheckpointMetadata, location: SavepointLocation, stop: bool
    ) -> None:
        """Write a savepoint; of a job without checkpoints also the one that stops it."""

        def done(created: bool | None, error: Exception | None) -> None:
            if not created:
                reason = str(error) if error is not None else "it was abandoned"
                self._outcome.given_up(metadata.checkpoint, reason)
            elif stop:
                self._outcome.completed(metadata)
            else:
                self._outcome.savepoint_completed(metadata)

        self._submit(lambda: location.complete(metadata), done)

    def _write(
        self, store: CheckpointStore, metadata: CheckpointMetadata, work: Callable[[], bool]
    ) -> None:
        def done(created: bool | None, error: Exception | None) -> None:
            if created:
                self._outcome.completed(metadata)
            elif isinstance(error, SupersededError):
                self._attempt.fail(error)
            else:
                # After an error the file may exist all the same; only a tombstone makes sure.
                reason = str(error) if error is not None else "it was abandoned"
                self._decide(store, metadata, reason)

        self._submit(work, done)

    def _decide(self, store: CheckpointStore, metadata: CheckpointMetadata, reason: str) -> None:
        """A write whose outcome is unknown: make it fail for good, or learn that it succeeded."""

        def done(abandoned: bool | None, error: Exception | None) -> None:
            if isinstance(error, SupersededError):
                self._attempt.fail(error)
            elif error is not None:
                self._outcome.doubtful(metadata, reason)
            elif abandoned:
                self._outcome.given_up(metadata.checkpoint, reason)
            else:
                self._outcome.completed(metadata)

        self._submit(lambda: store.abandon(metadata.checkpoint), done)

    def _submit(
        self, work: Callable[[], T], done: Callable[[T | None, Exception | None], None]
    ) -> None:
        number = self._attempt.number

        def heard(result: T | None, error: Exception | None) -> None:
            if self._attempt.runs(number):
                done(result, error)

        self._io.submit(work, heard)
