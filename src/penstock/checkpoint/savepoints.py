"""Where savepoints are, and their files.

<dir>/savepoint-<job>-<random>/_metadata     the manifest; the savepoint exists when it does
<dir>/savepoint-<job>-<random>/shared/       all of its state

Paths inside are relative, so the folder may be moved or copied as a whole.
"""

from __future__ import annotations

import os
from dataclasses import dataclass

from penstock.checkpoint import commit_marks
from penstock.checkpoint.metadata import (
    CheckpointMetadata,
    decode_metadata,
    encode_metadata,
    encode_tombstone,
)
from penstock.checkpoint.store import CheckpointStore
from penstock.common.filesystem import filesystem_for
from penstock.errors import CheckpointError, StorageError


@dataclass(frozen=True)
class SavepointLocation:
    """The folder of one savepoint."""

    directory: str
    name: str

    @property
    def path(self) -> str:
        return f"{self.directory.rstrip('/')}/{self.name}"

    def store(self) -> CheckpointStore:
        """Where slots put the segments: they see a store like that of any job."""
        return CheckpointStore(self.directory, self.name)

    def complete(self, metadata: CheckpointMetadata) -> bool:
        """Bring the savepoint into existence; False if it was abandoned before."""
        fs, path = filesystem_for(f"{self.path}/_metadata")
        data = encode_metadata(metadata)
        return fs.create(path, data) or fs.read(path) == data

    def abandon(self) -> None:
        """Make sure that it can never exist, and delete what there is of it."""
        fs, path = filesystem_for(f"{self.path}/_metadata")
        if not fs.create(path, encode_tombstone(0)):
            fs.delete(path)
        _delete_segments(self.path)

    def mark_committed(self) -> None:
        """All that it covers is committed: whoever restores it need not ask."""
        commit_marks.mark_existing(self.path)


@dataclass(frozen=True)
class Snapshot:
    """A savepoint or a retained checkpoint that somebody named by its path."""

    path: str
    store: CheckpointStore
    checkpoint: int | None
    """The number of a retained checkpoint; None for a savepoint."""
    metadata: CheckpointMetadata

    def is_committed(self) -> bool:
        """Whether all that it covers is known to be committed."""
        return commit_marks.is_marked(self.path)


def open_snapshot(path: str) -> Snapshot:
    """The savepoint or retained checkpoint at `path`, a folder or the `_metadata` in it.

    CheckpointError if there is none, CorruptCheckpointError if its manifest is damaged.
    """
    whole_path = path if "://" in path else os.path.abspath(path)
    folder = whole_path.rstrip("/").removesuffix("/_metadata").rstrip("/")
    number = folder.rsplit("/", 1)[-1].removeprefix("chk-")
    retained = number.isdigit() and folder.endswith(f"/chk-{number}")
    root = folder.rsplit("/", 1)[0] if retained else folder
    directory, _, name = root.rpartition("/")
    if not name:
        raise CheckpointError(
            f"{path} is no savepoint or checkpoint: expected a folder with a _metadata file"
        )
    store = CheckpointStore(directory or "/", name)
    metadata = _read(f"{folder}/_metadata")
    if metadata is None:
        beside = whole(store) if retained else "there is nothing in it"
        raise CheckpointError(f"{path}: it was abandoned; {beside}")
    return Snapshot(folder, store, int(number) if retained else None, metadata)


def dispose(path: str) -> None:
    """Delete a savepoint or a retained checkpoint, with all files that nothing else refers to."""
    snapshot = open_snapshot(path)
    if snapshot.checkpoint is not None:
        others = (m for m in snapshot.store.manifests() if m.checkpoint != snapshot.checkpoint)
        in_use = frozenset().union(*(metadata.segment_paths() for metadata in others))
        snapshot.store.discard(snapshot.checkpoint, snapshot.metadata.segment_paths() - in_use)
        return
    fs, folder = filesystem_for(snapshot.path)
    # The manifest goes first: a savepoint that exists is whole.
    fs.delete(f"{folder}/_metadata")
    fs.delete(f"{folder}/{commit_marks.NAME}")
    _delete_segments(snapshot.path)
    fs.delete(folder)


def whole(store: CheckpointStore) -> str:
    """Which checkpoints beside a damaged one can be used, in words."""
    names = ", ".join(f"chk-{checkpoint}" for checkpoint in store.whole())
    return f"whole in {store.directory}/{store.job_id}: {names or 'none'}"


def _read(manifest: str) -> CheckpointMetadata | None:
    fs, path = filesystem_for(manifest)
    try:
        data = fs.read(path)
    except StorageError as error:
        if isinstance(error.__cause__, FileNotFoundError | NotADirectoryError):
            raise CheckpointError(f"there is no savepoint or checkpoint {manifest}") from error
        raise
    return decode_metadata(data, path)


def _delete_segments(savepoint: str) -> None:
    fs, folder = filesystem_for(f"{savepoint}/shared")
    for name in fs.list(folder):
        fs.delete(f"{folder}/{name}")
    fs.delete(folder)
