"""Where an attempt starts: which checkpoint, and what must be settled before the first record.

All of this is slow (storage, sinks' servers) and runs off the JobMaster's thread.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from penstock.checkpoint.handles import SubtaskSnapshot
from penstock.checkpoint.imports import Each, import_checkpoint
from penstock.checkpoint.metadata import CheckpointMetadata
from penstock.checkpoint.parts import verified
from penstock.checkpoint.settings import LostOutput
from penstock.checkpoint.store import CheckpointStore
from penstock.common import config_options as options
from penstock.connectors.source import EnumeratorContext, SplitEnumerator
from penstock.errors import CheckpointError, CorruptCheckpointError, LostOutputError, SinkError
from penstock.graph.execution_graph import SubtaskId
from penstock.graph.job_graph import JobGraph
from penstock.graph.operators import SourceOperator
from penstock.jobmanager.committing import Commits, Committables, note_commit
from penstock.jobmanager.job import Job
from penstock.jobmanager.lost_output import WayOut, unchosen, way_out, without
from penstock.jobmanager.matching import check_fits
from penstock.jobmanager.rescaling import restored_subtasks
from penstock.jobmanager.sources import close_all


@dataclass(frozen=True)
class StartPoint:
    """What a new attempt begins with."""

    checkpoint: int
    restored: dict[SubtaskId, SubtaskSnapshot]
    enumerators: dict[int, SplitEnumerator]
    notes: list[str]
    references: frozenset[str]
    began_with: str | None = None
    """The path that the first attempt of all began with, as far as that is known."""
    metadata: CheckpointMetadata | None = None
    """The checkpoint; None at a first start."""


def find_start(
    job: Job, undecided: list[int], had_checkpoint: bool, struck: Mapping[int, str], each: Each
) -> StartPoint:
    """Say where the next attempt begins. `struck` has the checkpoints that are damaged, and why.

    Segments of a savepoint that the job begins with are copied by `each`.

    Nothing is committed or aborted: whether the state is what was written is seen by the slots,
    and only then it is certain that this is the checkpoint.
    """
    imported = _import(job, struck, each)
    metadata, notes = _choose(job, undecided, had_checkpoint, struck)
    notes = imported + notes
    return StartPoint(
        metadata.checkpoint if metadata is not None else 0,
        restored_subtasks(job.graph, metadata) if metadata is not None else {},
        _enumerators(job.graph.job, metadata),
        notes,
        metadata.segment_paths() if metadata is not None else frozenset(),
        metadata.restored_from if metadata is not None else None,
        metadata,
    )


def settle_output(
    job: Job, commits: Commits, undecided: list[int], struck: Mapping[int, str]
) -> CheckpointMetadata | None:
    """Nothing runs any more: what the newest checkpoint covers becomes visible, all else never.

    The checkpoint.
    """
    metadata, _ = _choose(job, undecided, False, struck)
    settle_start(job, commits, metadata, struck)
    return metadata


def settle_start(
    job: Job, commits: Commits, metadata: CheckpointMetadata | None, struck: Mapping[int, str]
) -> list[str]:
    """What the checkpoint covers becomes visible, and all else never; what to tell the user.

    `struck` has the checkpoints that are damaged, and why.

    SupersededError if another driver has taken the job over. LostOutputError if something that
    it covers is lost and nobody has chosen what to do; SinkError if the checkpoint is withdrawn
    because of that, so that the next attempt begins with the one before.
    """
    notes: list[str] = []
    covered: Committables = {}
    if job.store is not None:
        job.store.check_current()
    # First the output that the checkpoint covers, then nothing else may ever become visible.
    if job.store is not None and metadata is not None:
        covered = commits.known(metadata.committables)
        try:
            notes = _commit(job, job.store, metadata, commits, covered)
        except LostOutputError as error:
            # It may be another driver that committed and cleared up.
            job.store.check_current()
            raise _withdrawn(job, job.store, metadata, struck, error) from error
    commits.abort_others(covered)
    return notes


def confirmed_damage(job: Job, start: StartPoint, path: str) -> str | None:
    """What is wrong with the file of a checkpoint that a slot says is damaged; None if nothing is.

    StorageError if the storage does not answer, which is no damage.
    """
    assert job.store is not None and start.metadata is not None
    handles = [handle for handle in start.metadata.segments() if handle.path == path]
    try:
        for handle in handles:
            for _ in verified(handle, job.store):
                pass
    except CorruptCheckpointError as error:
        return str(error)
    return None


def _choose(
    job: Job, undecided: list[int], had_checkpoint: bool, struck: Mapping[int, str]
) -> tuple[CheckpointMetadata | None, list[str]]:
    """Decide what is undecided; the newest checkpoint that can be used, and a line for each newer.

    Files are listed, not read.
    """
    metadata: CheckpointMetadata | None = None
    notes: list[str] = []
    if job.store is not None:
        for checkpoint in undecided:
            job.store.abandon(checkpoint)
        metadata, notes = job.store.newest(struck)
        unclaimed: list[str] = []
        if metadata is not None:
            unclaimed = check_fits(job.graph.job, metadata, job.ignore_unclaimed)
        # From here on an older driver's checkpoints lead nowhere, and if there is a newer driver
        # nothing may be touched.
        job.store.note_start(metadata.checkpoint if metadata is not None else 0)
        if notes and metadata is not None:
            notes.append(
                f"the job goes on from checkpoint {metadata.checkpoint}; output that a later one "
                "had committed comes again"
            )
        if metadata is None and (had_checkpoint or notes):
            raise CorruptCheckpointError(
                "no checkpoint is left to restore from: " + "; ".join(notes or ["none was found"])
            )
        notes += unclaimed
    return metadata, notes


def _commit(
    job: Job,
    store: CheckpointStore,
    metadata: CheckpointMetadata,
    commits: Commits,
    covered: Committables,
) -> list[str]:
    """Commit what the checkpoint covers, unless a mark says that it is; what to tell the user."""
    if not any(covered.values()) or store.is_committed(metadata.checkpoint):
        return []
    notes: list[str] = []
    left = covered
    while True:
        try:
            commits.commit(left)
            break
        except LostOutputError as error:
            if job.checkpoints.lost_output is not LostOutput.SKIP:
                raise
            rest = without(left, error.lost)
            if rest == left:
                raise SinkError(f"{error.message}; the sink does not say what to skip") from error
            notes.append(f"left out, as {options.LOST_OUTPUT.key} says: {error.message}")
            left = rest
    if covered == metadata.committables:
        note_commit(lambda: store.mark_committed(metadata.checkpoint))
    return notes


def _withdrawn(
    job: Job,
    store: CheckpointStore,
    metadata: CheckpointMetadata,
    struck: Mapping[int, str],
    error: LostOutputError,
) -> SinkError:
    """Something that the checkpoint covers is lost: withdraw it, if the one before can be used."""
    checkpoint = metadata.checkpoint
    older, _ = store.newest(struck, before=checkpoint)
    if older is None or way_out(job.checkpoints.lost_output, error, older) is WayOut.STOP:
        return unchosen(error, checkpoint, older)
    store.withdraw(checkpoint)
    return SinkError(
        f"{error.message}; checkpoint {checkpoint}, which covers them, is withdrawn: the job goes "
        f"on from checkpoint {older.checkpoint}"
    )


def _import(job: Job, struck: Mapping[int, str], each: Each) -> list[str]:
    """Take over the checkpoint that the job is to begin with, unless it has one of its own.

    CheckpointError if it is known to have begun with another.
    """
    if job.store is None or job.restore_path is None:
        return []
    own, damaged = job.store.newest(struck)
    if own is None and not damaged:
        import_checkpoint(job.store, job.restore_path, job.claim, each)
        return []
    if own is None or own.restored_from is None:
        return [f"job {job.id} has checkpoints of its own, so {job.restore_path} is not used"]
    if _folder(own.restored_from) != _folder(job.restore_path):
        raise CheckpointError(
            f"job {job.id} cannot begin with {job.restore_path}: it began with "
            f"{own.restored_from} and has come to checkpoint {own.checkpoint}; to go on from there "
            "start it without a path, and to begin with the other give it another id (--job-id, "
            "pipeline.jobid)"
        )
    # The same start again, as whatever watches over the driver makes it.
    return []


def _folder(path: str) -> str:
    """The folder of the savepoint or checkpoint that `path` names."""
    return path.removesuffix("/_metadata").rstrip("/")


def _enumerators(job: JobGraph, metadata: CheckpointMetadata | None) -> dict[int, SplitEnumerator]:
    restored = metadata.enumerators if metadata is not None else {}
    enumerators: dict[int, SplitEnumerator] = {}
    try:
        for vertex in job.vertices:
            operator = vertex.head.operator
            if isinstance(operator, SourceOperator):
                context = EnumeratorContext(vertex.parallelism)
                state = restored.get(vertex.uid)
                enumerators[vertex.id] = operator.source.create_enumerator(context, state)
    except BaseException:
        # There will be no attempt that closes those that were made.
        close_all(enumerators)
        raise
    return enumerators
