"""Begin with a savepoint, or a checkpoint of another job or of another time: `-s PATH`.

It is copied into the job's own directory, segments and all, and becomes its first checkpoint. So
the job depends on nothing that it does not own, and whoever made the original may delete it.
"""

from __future__ import annotations

from dataclasses import replace

from penstock.checkpoint.savepoints import dispose, open_snapshot, whole
from penstock.checkpoint.segment_names import CopyName, name_in
from penstock.checkpoint.store import CheckpointStore
from penstock.errors import CheckpointError, CorruptCheckpointError, StorageError


def import_checkpoint(store: CheckpointStore, path: str, claim: bool = False) -> None:
    """Copy the savepoint or checkpoint at `path` into `store`; with `claim` the original goes.

    CorruptCheckpointError if it is damaged, saying which of its neighbours are whole;
    CheckpointError if there is none.
    """
    if claim and store.in_memory:
        raise CheckpointError(
            f"{path} cannot be claimed: this job keeps its checkpoints in memory, so they would "
            "be the only ones; set execution.checkpointing.dir, or do not claim"
        )
    source = open_snapshot(path)
    try:
        contents = {h.path: source.store.read_whole(h) for h in source.metadata.segments()}
    except CorruptCheckpointError as error:
        if source.checkpoint is None:
            raise CorruptCheckpointError(f"savepoint {path} cannot be used: {error}") from error
        raise CorruptCheckpointError(
            f"checkpoint {source.checkpoint} cannot be used: {error}; {whole(source.store)}"
        ) from error
    number = store.first_id()
    names = {old: CopyName(store.generation, number, name_in(old)) for old in contents}
    paths = {old: store.import_segment(str(names[old]), data) for old, data in contents.items()}
    copy = replace(
        source.metadata.with_paths(paths),
        job_id=store.job_id,
        checkpoint=number,
        restored_from=path,
    )
    if not store.complete(copy, source.is_committed()):
        raise StorageError(f"{path} could not be taken over as checkpoint {number}: it is there")
    if claim:
        dispose(path)
