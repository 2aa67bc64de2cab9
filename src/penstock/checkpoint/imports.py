"""Begin with a savepoint, or a checkpoint of another job or of another time: `-s PATH`.

It is copied into the job's own directory, segments and all, and becomes its first checkpoint. So
the job depends on nothing that it does not own, and whoever made the original may delete it. A
segment is read, verified and written part after part, and some of them beside each other.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace

from penstock.checkpoint.handles import SegmentHandle
from penstock.checkpoint.parts import verified
from penstock.checkpoint.savepoints import dispose, open_snapshot, whole
from penstock.checkpoint.segment_names import CopyName, name_in
from penstock.checkpoint.store import CheckpointStore
from penstock.errors import CheckpointError, CorruptCheckpointError, StorageError

Copy = Callable[[SegmentHandle], str]
Each = Callable[[Copy, Iterable[SegmentHandle]], Iterable[str]]


def import_checkpoint(
    store: CheckpointStore, path: str, claim: bool = False, each: Each = map
) -> None:
    """Copy the savepoint or checkpoint at `path` into `store`; with `claim` the original goes.

    `each` calls a function with many arguments, as `map` does, and perhaps with some at a time.

    CorruptCheckpointError if it is damaged, saying which of its neighbours are whole;
    CheckpointError if there is none.
    """
    if claim and store.in_memory:
        raise CheckpointError(
            f"{path} cannot be claimed: this job keeps its checkpoints in memory, so they would "
            "be the only ones; set execution.checkpointing.dir, or do not claim"
        )
    source = open_snapshot(path)
    number = store.first_id()
    handles = {handle.path: handle for handle in source.metadata.segments()}
    names = {old: str(CopyName(store.generation, number, name_in(old))) for old in handles}

    def copy(handle: SegmentHandle) -> str:
        return store.import_segment(names[handle.path], verified(handle, source.store))

    try:
        paths = dict(zip(handles, each(copy, handles.values()), strict=True))
    except CorruptCheckpointError as error:
        for name in names.values():
            store.remove_segment(name)
        if source.checkpoint is None:
            raise CorruptCheckpointError(f"savepoint {path} cannot be used: {error}") from error
        raise CorruptCheckpointError(
            f"checkpoint {source.checkpoint} cannot be used: {error}; {whole(source.store)}"
        ) from error
    own = replace(
        source.metadata.with_paths(paths),
        job_id=store.job_id,
        checkpoint=number,
        restored_from=path,
    )
    if not store.complete(own, source.is_committed()):
        raise StorageError(f"{path} could not be taken over as checkpoint {number}: it is there")
    if claim:
        dispose(path)
