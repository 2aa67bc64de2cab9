"""Begin with a checkpoint of another job, or of another time: `-s PATH`.

The checkpoint is copied into the job's own directory, segments and all, and becomes its first one.
So the job depends on nothing that it does not own, and whoever made the original may delete it.
"""

from __future__ import annotations

from dataclasses import replace

from penstock.checkpoint.handles import SegmentHandle
from penstock.checkpoint.metadata import CheckpointMetadata, decode_metadata
from penstock.checkpoint.store import CheckpointStore
from penstock.common.filesystem import filesystem_for
from penstock.errors import CheckpointError, CorruptCheckpointError, StorageError


def import_checkpoint(store: CheckpointStore, path: str) -> None:
    """Copy the checkpoint at `path` (a `chk-N` directory or its `_metadata`) into `store`.

    CorruptCheckpointError if it is damaged, saying which of its neighbours are whole;
    CheckpointError if there is none.
    """
    source, checkpoint, manifest = _locate(path)
    metadata = _read(manifest)
    if metadata is None:
        raise CheckpointError(f"{path}: this checkpoint was abandoned; {_whole(source)}")
    try:
        contents = {handle.path: source.read_whole(handle) for handle in metadata.segments()}
    except CorruptCheckpointError as error:
        raise CorruptCheckpointError(
            f"checkpoint {checkpoint} cannot be used: {error}; {_whole(source)}"
        ) from error
    number = store.first_id()
    names = {old: f"{store.generation}-{number}-from-{old.rsplit('/', 1)[-1]}" for old in contents}
    paths = {old: store.import_segment(names[old], data) for old, data in contents.items()}
    copy = replace(
        _with_paths(metadata, paths),
        job_id=store.job_id,
        checkpoint=number,
        restored_from=path,
    )
    if not store.complete(copy):
        raise CheckpointError(f"{path} could not be taken over as checkpoint {number}: try again")


def _locate(path: str) -> tuple[CheckpointStore, str, str]:
    """The store that it is in, its id, and the path of its manifest."""
    parts = path.rstrip("/").removesuffix("/_metadata").rsplit("/", 2)
    number = parts[-1].removeprefix("chk-")
    if len(parts) != 3 or not parts[-1].startswith("chk-") or not number.isdigit():
        raise CheckpointError(
            f"{path} is no checkpoint: expected a directory DIR/JOB-ID/chk-N or its _metadata"
        )
    return CheckpointStore(parts[0] or "/", parts[1]), number, "/".join([*parts, "_metadata"])


def _read(manifest: str) -> CheckpointMetadata | None:
    fs, path = filesystem_for(manifest)
    try:
        data = fs.read(path)
    except StorageError as error:
        if isinstance(error.__cause__, FileNotFoundError):
            raise CheckpointError(f"there is no checkpoint {manifest}") from error
        raise
    return decode_metadata(data, path)


def _whole(store: CheckpointStore) -> str:
    whole = ", ".join(f"chk-{checkpoint}" for checkpoint in store.whole())
    return f"whole in {store.directory}/{store.job_id}: {whole or 'none'}"


def _with_paths(metadata: CheckpointMetadata, paths: dict[str, str]) -> CheckpointMetadata:
    def moved(handle: SegmentHandle) -> SegmentHandle:
        return replace(handle, path=paths[handle.path])

    vertices = {}
    for uid, vertex in metadata.vertices.items():
        subtasks = tuple(
            replace(
                subtask,
                operators={
                    name: replace(operator, segments=tuple(map(moved, operator.segments)))
                    for name, operator in subtask.operators.items()
                },
            )
            for subtask in vertex.subtasks
        )
        vertices[uid] = replace(vertex, subtasks=subtasks)
    return replace(metadata, vertices=vertices)
