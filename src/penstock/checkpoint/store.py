"""Where checkpoints are: Flink's layout on any file system.

<dir>/<job-id>/chk-7/_metadata     the manifest; the checkpoint exists when it does
<dir>/<job-id>/chk-7/_committed    all that it covers is committed
<dir>/<job-id>/shared/             segments that checkpoints refer to
<dir>/<job-id>/taskowned/          reserved, as in Flink
<dir>/<job-id>/generation-2        a second driver has taken the job over
"""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Protocol

from penstock.checkpoint import commit_marks
from penstock.checkpoint.generations import Generations
from penstock.checkpoint.handles import SegmentHandle
from penstock.checkpoint.lineage import lineage
from penstock.checkpoint.listing import Listing
from penstock.checkpoint.metadata import (
    CheckpointMetadata,
    decode_metadata,
    encode_metadata,
    encode_tombstone,
)
from penstock.checkpoint.orphans import Contents
from penstock.checkpoint.segment_names import FOLDER, path_of
from penstock.common.filesystem import Content, FileSystem, filesystem_for, parts_of
from penstock.errors import CheckpointDirectoryError, CorruptCheckpointError, StorageError

MEMORY = "memory://jobmanager"
"""The directory of checkpoints that live in the JobMaster's memory, and end with it."""


def is_damage(error: BaseException) -> bool:
    """Whether a file of a checkpoint is not what was written, or not there.

    Storage that does not answer is no damage.
    """
    return isinstance(error, CorruptCheckpointError) or _is_missing(error)


class SegmentStore(Protocol):
    """Where a slot puts segments and finds them again."""

    def write_segment(self, name: str, content: Content) -> str:
        """Store a segment; its path."""
        ...

    def read_segment(self, path: str) -> bytes: ...

    def read_part(self, path: str, start: int, size: int) -> bytes: ...


class CarriedSegments:
    """A slot's segments when checkpoints live in the JobMaster's memory: messages carry them."""

    def __init__(self, restored: Mapping[str, bytes]) -> None:
        self._restored = restored
        self._written: dict[str, bytes] = {}

    def write_segment(self, name: str, content: Content) -> str:
        path = path_of(name)
        self._written[path] = b"".join(parts_of(content))
        return path

    def read_segment(self, path: str) -> bytes:
        return self._restored[path]

    def read_part(self, path: str, start: int, size: int) -> bytes:
        return self._restored[path][start : start + size]

    def take(self) -> dict[str, bytes]:
        """What was written since the last time: to be sent with the acknowledgement."""
        written, self._written = self._written, {}
        return written


@dataclass(frozen=True)
class CheckpointStore:
    """The checkpoints of one job. Picklable: slots get it too, for their segments."""

    directory: str
    job_id: str
    generation: int = 0
    """Which driver of the job this is, counted from 1; 0 for one who only looks."""

    @property
    def in_memory(self) -> bool:
        return self.directory.startswith("memory://")

    def keep_segments(self, segments: Mapping[str, bytes]) -> None:
        """Take in segments that a slot's message carried."""
        fs, root = self._root()
        for path, data in segments.items():
            fs.create(f"{root}/{path}", data)

    def prepare(self) -> None:
        """CheckpointDirectoryError unless files can be created in the directory, and only once."""
        fs, root = self._root()
        # A name that no other driver uses: what it would find there is none of its business.
        probe = f"{root}/taskowned/.probe-{uuid.uuid4().hex}"
        try:
            fs.create(probe, b"")
            overwrites = fs.create(probe, b"")
            fs.delete(probe)
        except StorageError as error:
            raise CheckpointDirectoryError(
                f"checkpoint directory {self.directory} cannot be used: {error}; choose another "
                "with execution.checkpointing.dir"
            ) from error
        if overwrites:
            raise CheckpointDirectoryError(
                f"checkpoint directory {self.directory} cannot be used: its storage replaces a "
                "file where it should create one only if there is none (an S3 store must honour "
                "If-None-Match), so two drivers of a job would overwrite each other's checkpoints; "
                "choose another with execution.checkpointing.dir"
            )

    def claim(self) -> CheckpointStore:
        """Take the job over from whatever driver had it before; the store of the new driver."""
        return replace(self, generation=self._generations().claim())

    def check_current(self) -> None:
        """SupersededError if another driver has taken the job over."""
        self._generations().check(self.generation)

    def note_start(self, checkpoint: int) -> None:
        """Note which checkpoint this driver begins with (0: none), before it changes anything.

        SupersededError if another driver has taken the job over.
        """
        if self.generation:
            self._generations().note_start(self.generation, checkpoint)
        self.check_current()

    def ids(self) -> list[int]:
        """Every id that has a directory, ascending; complete or not."""
        fs, root = self._root()
        names = (name.removeprefix("chk-") for name in fs.list(root) if name.startswith("chk-"))
        return sorted(int(name) for name in names if name.isdigit())

    def first_id(self) -> int:
        """Above every id that this job has used, as far as can be seen."""
        return max((*self.ids(), *self._generations().starts().values()), default=0) + 1

    def complete(self, metadata: CheckpointMetadata, committed: bool = False) -> bool:
        """Bring the checkpoint into existence; False if it was abandoned, or is another driver's.

        `committed`: all that it covers is.

        SupersededError if another driver has taken the job over: what came into existence then
        leads nowhere, and nothing of it may be committed.
        """
        fs, path = self._metadata_path(metadata.checkpoint)
        data = encode_metadata(replace(metadata, generation=self.generation))
        if committed and not commit_marks.mark(self._folder(metadata.checkpoint), data):
            # First: a checkpoint that exists without its mark would be asked about. Another driver
            # has put its own mark there, and is about to use this id.
            return False
        exists = fs.create(path, data) or self._is_mine(metadata.checkpoint)
        self.check_current()
        return exists

    def abandon(self, checkpoint: int) -> bool:
        """Make sure that it can never exist; False if it exists already.

        A checkpoint of another driver under the same id is none of ours: ours is abandoned.
        """
        fs, path = self._metadata_path(checkpoint)
        gone = fs.create(path, encode_tombstone(checkpoint)) or not self._is_mine(checkpoint)
        self.check_current()
        return gone

    def _is_mine(self, checkpoint: int) -> bool:
        """Whether this driver completed it: an answer may have been lost on the way."""
        fs, path = self._metadata_path(checkpoint)
        try:
            metadata = decode_metadata(fs.read(path), path)
        except CorruptCheckpointError:
            # Created whole and damaged since: whoever made it, it was not abandoned.
            return True
        except StorageError as error:
            if _is_missing(error):
                # Another driver had this id, and has deleted its checkpoint since.
                return False
            raise
        return metadata is not None and metadata.generation == self.generation

    def withdraw(self, checkpoint: int) -> None:
        """Strike out a checkpoint that exists: it cannot be used, and never will be."""
        fs, path = self._metadata_path(checkpoint)
        fs.delete(path)
        fs.create(path, encode_tombstone(checkpoint))

    def newest(
        self, struck: Mapping[int, str] | None = None, before: int | None = None
    ) -> tuple[CheckpointMetadata | None, list[str]]:
        """The newest checkpoint that counts and is all there, and a line for each newer one.

        Segments are listed, not read: that each is there, in its size. Whether it is what was
        written is seen by whoever reads it. `struck` says which checkpoints were found to be
        damaged, and why.

        Only those `before` a checkpoint, if one is named.

        CheckpointFormatError if a newer version of Penstock wrote one: an older checkpoint would
        repeat what that one has committed.
        """
        starts = self._starts()
        manifests, problems = self._manifests()
        problems = {**(struck or {}), **problems}
        manifests = {c: found for c, found in manifests.items() if c not in problems}
        passed_over: list[str] = []
        listing = Listing(self._segment)
        for checkpoint in sorted({*self._counting(manifests, starts), *problems}, reverse=True):
            if before is not None and checkpoint >= before:
                continue
            problem = problems.get(checkpoint) or listing.lack(manifests[checkpoint].segments())
            if problem is None:
                return manifests[checkpoint], passed_over
            passed_over.append(f"checkpoint {checkpoint} cannot be used: {problem}")
        return None, passed_over

    def _starts(self) -> dict[int, int]:
        """The checkpoint that each driver began with; to be read before the manifests.

        A driver that ends the job deletes its checkpoints, and then the mark of the end. So whoever
        does not find the mark any more finds no checkpoint of that job either.
        """
        return self._generations().starts()

    def _counting(
        self, manifests: Mapping[int, CheckpointMetadata], starts: Mapping[int, int]
    ) -> list[int]:
        """Those of them that count for this driver, newest first."""
        generations = {c: m.generation for c, m in manifests.items()}
        return lineage(generations, starts, self.generation)

    def manifests(self) -> list[CheckpointMetadata]:
        """All checkpoints whose manifest can be read."""
        return list(self._manifests()[0].values())

    def whole(self) -> list[int]:
        """The ids of all checkpoints that are whole, ascending."""
        return sorted(c for c, m in self._manifests()[0].items() if self._damage(m) is None)

    def _manifests(self) -> tuple[dict[int, CheckpointMetadata], dict[int, str]]:
        """The complete checkpoints, and what is wrong with those that cannot be read."""
        manifests, problems = {}, {}
        for checkpoint in self.ids():
            fs, path = self._metadata_path(checkpoint)
            if not fs.exists(path):
                continue
            try:
                metadata = decode_metadata(fs.read(path), path)
            except CorruptCheckpointError as error:
                problems[checkpoint] = str(error)
                continue
            except StorageError as error:
                if _is_missing(error):
                    # An older driver that is still at work has deleted it just now.
                    continue
                raise
            if metadata is not None:
                manifests[checkpoint] = metadata
        return manifests, problems

    def _damage(self, metadata: CheckpointMetadata) -> str | None:
        """What is wrong with its segments, all of which are read."""
        try:
            for handle in metadata.segments():
                self.read_whole(handle)
        except CorruptCheckpointError as error:
            return str(error)
        return None

    def read_whole(self, handle: SegmentHandle) -> bytes:
        """A segment; CorruptCheckpointError if it is missing or not what was written."""
        # Only what is known to be damaged may be passed over: storage that does not answer just
        # now is an error, or an older checkpoint would repeat what a newer one has committed.
        try:
            data = self.read_segment(handle.path)
        except StorageError as error:
            if is_damage(error):
                raise CorruptCheckpointError(f"{handle.path} is missing") from error
            raise
        handle.verify(data)
        return data

    def write_segment(self, name: str, content: Content) -> str:
        """Store a segment; its path, relative to the job's directory."""
        fs, root = self._root()
        path = path_of(name)
        if not fs.create(f"{root}/{path}", content):
            raise StorageError(f"segment {path} exists: its name was used before")
        return path

    def import_segment(self, name: str, content: Content) -> str:
        """Store a segment under a name that always has this content; its path."""
        fs, root = self._root()
        path = path_of(name)
        fs.create(f"{root}/{path}", content)
        return path

    def read_segment(self, path: str) -> bytes:
        """A segment of this job's, or one elsewhere that is named by its whole path."""
        fs, whole_path = self._segment(path)
        return fs.read(whole_path)

    def read_part(self, path: str, start: int, size: int) -> bytes:
        """Some bytes of a segment, which nobody has verified."""
        fs, whole_path = self._segment(path)
        return fs.read_part(whole_path, start, size)

    def _segment(self, path: str) -> tuple[FileSystem, str]:
        if not path.startswith(FOLDER):
            return filesystem_for(path)
        fs, root = self._root()
        return fs, f"{root}/{path}"

    def discard(self, checkpoint: int, segments: frozenset[str]) -> None:
        """Delete a checkpoint, then the segments that nothing else refers to."""
        fs, root = self._root()
        # The manifest goes first: a checkpoint that exists is whole.
        fs.delete(f"{root}/chk-{checkpoint}/_metadata")
        fs.delete(f"{root}/chk-{checkpoint}/{commit_marks.NAME}")
        fs.delete(f"{root}/chk-{checkpoint}")
        for path in sorted(segments):
            fs.delete(f"{root}/{path}")

    def contents(self) -> Contents:
        """What is in the directory, for whoever looks for what may be deleted."""
        fs, root = self._root()
        # Before the manifests: what is not named by one later was not written in between.
        segments = tuple(fs.list(f"{root}/shared"))
        starts = self._starts()
        manifests, problems = self._manifests()
        return Contents(
            segments,
            {checkpoint: found.segment_paths() for checkpoint, found in manifests.items()},
            tuple(self._counting(manifests, starts)),
            frozenset(self.ids()) - {*manifests, *problems},
            frozenset(problems),
        )

    def remove_checkpoint(self, checkpoint: int) -> None:
        """Delete a checkpoint's folder with all that is in it, whole or not."""
        fs, root = self._root()
        folder = f"{root}/chk-{checkpoint}"
        fs.delete(f"{folder}/_metadata")
        for name in fs.list(folder):
            fs.delete(f"{folder}/{name}")
        fs.delete(folder)

    def remove_segment(self, name: str) -> None:
        """Delete a segment that nothing refers to."""
        fs, root = self._root()
        fs.delete(f"{root}/{path_of(name)}")

    def discard_all(self, named: bool = False) -> None:
        """Delete everything of this job: its id begins anew. Nothing, if it was taken over.

        Of a job that had several drivers a mark stays, so that one that was only paused does not
        take itself for the first; and of one with a name that may be used again (`named`), so
        that no attempt of it ever has the number of another.
        """
        fs, root = self._root()
        # Listed before the end is marked: whatever a later driver writes is not among it.
        folders = ("shared", "taskowned")
        files = {folder: fs.list(f"{root}/{folder}") for folder in folders}
        ids = self.ids()
        generations = self._generations()
        if self.generation:
            generations.end(self.generation)
        for checkpoint in ids:
            self.discard(checkpoint, frozenset())
        for folder in folders:
            for name in files[folder]:
                fs.delete(f"{root}/{folder}/{name}")
            fs.delete(f"{root}/{folder}")
        if self.generation:
            mark_stays = not self.in_memory and (named or self.generation > 1)
            generations.forget(self.generation if mark_stays else self.generation + 1)
            if mark_stays:
                return
        fs.delete(root)

    def mark_committed(self, checkpoint: int) -> None:
        """All that it covers is committed: whoever restores it need not ask."""
        commit_marks.mark_existing(self._folder(checkpoint))

    def is_committed(self, checkpoint: int) -> bool:
        """Whether all that it covers is known to be committed."""
        return commit_marks.is_marked(self._folder(checkpoint))

    def _folder(self, checkpoint: int) -> str:
        return f"{self.directory}/{self.job_id}/chk-{checkpoint}"

    def _generations(self) -> Generations:
        return Generations(*self._root())

    def _root(self) -> tuple[FileSystem, str]:
        fs, base = filesystem_for(self.directory)
        return fs, f"{base}/{self.job_id}"

    def _metadata_path(self, checkpoint: int) -> tuple[FileSystem, str]:
        fs, root = self._root()
        return fs, f"{root}/chk-{checkpoint}/_metadata"


def _is_missing(error: BaseException) -> bool:
    """Whether the storage answered that there is no such file."""
    return isinstance(error, StorageError) and isinstance(error.__cause__, FileNotFoundError)
