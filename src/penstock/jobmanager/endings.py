"""How a job ends: which failures are final, and what is settled and kept when nothing runs."""

from __future__ import annotations

from penstock.checkpoint.coordinator import unreferenced
from penstock.checkpoint.metadata import CheckpointMetadata
from penstock.checkpoint.settings import Retention
from penstock.checkpoint.store import CheckpointStore
from penstock.common.job_status import JobStatus
from penstock.errors import (
    CheckpointError,
    CheckpointFormatError,
    CorruptCheckpointError,
    LostOutputError,
    PenstockError,
    ProgramError,
    RefusedError,
    StateError,
    SupersededError,
)
from penstock.jobmanager.checkpoints import Checkpoints
from penstock.jobmanager.job import Job
from penstock.jobmanager.recovery import settle_output

HOPELESS = (
    CheckpointError,
    CorruptCheckpointError,
    CheckpointFormatError,
    LostOutputError,
    ProgramError,
    RefusedError,
    SupersededError,
)
"""What another attempt would only find again when it looks for where to begin."""

MISTAKES = (ProgramError, RefusedError, StateError)
"""What is wrong with the program itself, or what a server refuses for good: the slots of another
attempt would only find it again. Other errors say of themselves whether they are `lasting`."""


def settle(job: Job, checkpoints: Checkpoints, final: JobStatus, error: Exception | None) -> None:
    """Settle the output of a job of which nothing runs any more, and clear up.

    Slow; may be called again if it fails.
    """
    if isinstance(error, SupersededError):
        # Output and checkpoints are another driver's now.
        return
    newest: CheckpointMetadata | None = None
    if final is JobStatus.FINISHED:
        # All output is out; a slot that was given up may have begun files since.
        checkpoints.committing.abort_others({})
    else:
        undecided, struck = checkpoints.undecided, checkpoints.struck
        newest = settle_output(job, checkpoints.committing, undecided, struck)
    if job.store is None:
        return
    if not kept(job, final):
        job.store.discard_all(job.named)
    elif newest is not None:
        discard_all_but(job.store, job.checkpoints.retained, newest.checkpoint)


def discard_all_but(store: CheckpointStore, retained: int, newest: int) -> None:
    """Delete all checkpoints but the newest `retained`, and none from `newest` on, the one to use.

    A manifest that was under way when the job ended may have brought one more into existence.
    """
    contents = store.contents()
    counting = {checkpoint: contents.checkpoints[checkpoint] for checkpoint in contents.counting}
    for checkpoint, segments in unreferenced(counting, retained, newest).items():
        store.discard(checkpoint, segments)


def kept(job: Job, final: JobStatus) -> bool:
    """Whether checkpoints stay when the job ends like this."""
    if job.store is None or job.store.in_memory or final is JobStatus.FINISHED:
        return False
    retention = job.checkpoints.retention
    if final is JobStatus.CANCELED:
        return retention is Retention.RETAIN_ON_CANCELLATION
    return retention is not Retention.NO_EXTERNALIZED_CHECKPOINTS


def as_penstock(error: BaseException) -> PenstockError:
    """The error, as one that a job can fail of."""
    if isinstance(error, PenstockError):
        return error
    wrapped = PenstockError(f"{type(error).__name__}: {error}")
    wrapped.__cause__ = error
    return wrapped
