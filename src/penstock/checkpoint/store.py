"""Where checkpoints are: Flink's layout on any file system.

<dir>/<job-id>/chk-7/_metadata     the manifest; the checkpoint exists when it does
<dir>/<job-id>/shared/             segments that checkpoints refer to
<dir>/<job-id>/taskowned/          reserved, as in Flink
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol

from penstock.checkpoint.handles import SegmentHandle
from penstock.checkpoint.metadata import (
    CheckpointMetadata,
    decode_metadata,
    encode_metadata,
    encode_tombstone,
)
from penstock.common.filesystem import FileSystem, filesystem_for
from penstock.errors import CheckpointDirectoryError, CorruptCheckpointError, StorageError

MEMORY = "memory://jobmanager"
"""The directory of checkpoints that live in the JobMaster's memory, and end with it."""


class SegmentStore(Protocol):
    """Where a slot puts segments and finds them again."""

    def write_segment(self, name: str, data: bytes) -> str: ...

    def read_segment(self, path: str) -> bytes: ...


class CarriedSegments:
    """A slot's segments when checkpoints live in the JobMaster's memory: messages carry them."""

    def __init__(self, restored: Mapping[str, bytes]) -> None:
        self._restored = restored
        self._written: dict[str, bytes] = {}

    def write_segment(self, name: str, data: bytes) -> str:
        path = segment_path(name)
        self._written[path] = data
        return path

    def read_segment(self, path: str) -> bytes:
        return self._restored[path]

    def take(self) -> dict[str, bytes]:
        """What was written since the last time: to be sent with the acknowledgement."""
        written, self._written = self._written, {}
        return written


def segment_path(name: str) -> str:
    """The path of a segment, relative to its job's directory."""
    return f"shared/{name}"


@dataclass(frozen=True)
class CheckpointStore:
    """The checkpoints of one job. Picklable: slots get it too, for their segments."""

    directory: str
    job_id: str

    @property
    def in_memory(self) -> bool:
        return self.directory.startswith("memory://")

    def keep_segments(self, segments: Mapping[str, bytes]) -> None:
        """Take in segments that a slot's message carried."""
        fs, root = self._root()
        for path, data in segments.items():
            fs.create(f"{root}/{path}", data)

    def prepare(self) -> None:
        """CheckpointDirectoryError unless the directory can be written to."""
        fs, root = self._root()
        probe = f"{root}/taskowned/.probe"
        try:
            fs.delete(probe)
            fs.create(probe, b"")
            fs.delete(probe)
        except StorageError as error:
            raise CheckpointDirectoryError(
                f"checkpoint directory {self.directory} cannot be used: {error}; choose another "
                "with execution.checkpointing.dir"
            ) from error

    def ids(self) -> list[int]:
        """Every id that has a directory, ascending; complete or not."""
        fs, root = self._root()
        names = (name.removeprefix("chk-") for name in fs.list(root) if name.startswith("chk-"))
        return sorted(int(name) for name in names if name.isdigit())

    def complete(self, metadata: CheckpointMetadata) -> bool:
        """Bring the checkpoint into existence; False if it was abandoned before."""
        fs, path = self._metadata_path(metadata.checkpoint)
        return fs.create(path, encode_metadata(metadata))

    def abandon(self, checkpoint: int) -> bool:
        """Make sure that it can never exist; False if it exists already."""
        fs, path = self._metadata_path(checkpoint)
        return fs.create(path, encode_tombstone(checkpoint)) or self._is_tombstone(checkpoint)

    def _is_tombstone(self, checkpoint: int) -> bool:
        fs, path = self._metadata_path(checkpoint)
        try:
            return decode_metadata(fs.read(path), path) is None
        except CorruptCheckpointError:
            return False

    def newest(self) -> tuple[CheckpointMetadata | None, list[str]]:
        """The newest checkpoint that is whole, and a line for each damaged one passed over."""
        passed_over = []
        for checkpoint in reversed(self.ids()):
            fs, path = self._metadata_path(checkpoint)
            if not fs.exists(path):
                continue
            try:
                metadata = decode_metadata(fs.read(path), path)
                if metadata is None:
                    continue
                self._verify_segments(metadata)
            except CorruptCheckpointError as error:
                passed_over.append(f"checkpoint {checkpoint} cannot be used: {error}")
                continue
            return metadata, passed_over
        return None, passed_over

    def _verify_segments(self, metadata: CheckpointMetadata) -> None:
        """Whole before anything is restored: never half a restore."""
        for vertex in metadata.vertices.values():
            for subtask in vertex.subtasks:
                for operator in subtask.operators.values():
                    for handle in operator.segments:
                        self._verify_segment(handle)

    def _verify_segment(self, handle: SegmentHandle) -> None:
        # Only what is known to be damaged may be passed over: storage that does not answer just
        # now is an error, or an older checkpoint would repeat what a newer one has committed.
        try:
            handle.verify(self.read_segment(handle.path))
        except StorageError as error:
            if isinstance(error.__cause__, FileNotFoundError):
                raise CorruptCheckpointError(f"{handle.path} is missing") from error
            raise

    def write_segment(self, name: str, data: bytes) -> str:
        """Store a segment; its path, relative to the job's directory."""
        fs, root = self._root()
        path = segment_path(name)
        if not fs.create(f"{root}/{path}", data):
            raise StorageError(f"segment {path} exists: its name was used before")
        return path

    def read_segment(self, path: str) -> bytes:
        fs, root = self._root()
        return fs.read(f"{root}/{path}")

    def discard(self, checkpoint: int, segments: frozenset[str]) -> None:
        """Delete a checkpoint, then the segments that nothing else refers to."""
        fs, root = self._root()
        # The manifest goes first: a checkpoint that exists is whole.
        fs.delete(f"{root}/chk-{checkpoint}/_metadata")
        fs.delete(f"{root}/chk-{checkpoint}")
        for path in sorted(segments):
            fs.delete(f"{root}/{path}")

    def discard_all(self) -> None:
        """Delete everything of this job."""
        fs, root = self._root()
        for checkpoint in self.ids():
            self.discard(checkpoint, frozenset())
        for folder in ("shared", "taskowned"):
            for name in fs.list(f"{root}/{folder}"):
                fs.delete(f"{root}/{folder}/{name}")
            fs.delete(f"{root}/{folder}")
        fs.delete(root)

    def _root(self) -> tuple[FileSystem, str]:
        fs, base = filesystem_for(self.directory)
        return fs, f"{base}/{self.job_id}"

    def _metadata_path(self, checkpoint: int) -> tuple[FileSystem, str]:
        fs, root = self._root()
        return fs, f"{root}/chk-{checkpoint}/_metadata"
