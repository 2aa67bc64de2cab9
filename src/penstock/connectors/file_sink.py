"""An exactly-once file sink: a file becomes visible when the checkpoint that covers it completes.

While it is written a file is called ``.part-....inprogress`` and lies in the sink's directory,
whatever its bucket. At the barrier it is synced, closed and named in the checkpoint, with the name
it is to have; once that is complete it is renamed: into its bucket's folder, without the leading
dot. Readers that skip dot files, as Spark does, never see a half file. On S3, where nothing can be
renamed, it is an upload until then, and is completed (`penstock.connectors.file_multipart`).
"""

from __future__ import annotations

import contextlib
import copy
import hashlib
import sys
from collections.abc import Callable
from dataclasses import dataclass, field, replace

from penstock.common.filesystem import FileSystem
from penstock.common.plain import Plain
from penstock.common.typeinfo import TypeInformation
from penstock.connectors.bulk_writer import BulkWriter, BulkWriterFactory, RowWriterFactory
from penstock.connectors.file_buckets import (
    BasePathBucketAssigner,
    BucketAssigner,
    BucketContext,
    checked_bucket,
)
from penstock.connectors.file_committables import SUFFIX, renamed_parts
from penstock.connectors.file_compaction import (
    CompactingCommitter,
    FileCompactor,
    FileCompactStrategy,
)
from penstock.connectors.file_multipart import MultipartCommitter, MultipartParts
from penstock.connectors.file_parts import (
    PartStorage,
    PartStream,
    RenamedParts,
    is_unfinished,
    renaming_filesystem,
)
from penstock.connectors.file_rolling import OutputFileConfig, RollingPolicy
from penstock.connectors.s3_uploads import uploads_for
from penstock.connectors.sink import (
    Committer,
    CommitterContext,
    Sink,
    SinkWriter,
    WriterContext,
)
from penstock.errors import SinkError, StorageError


@dataclass(frozen=True)
class FileSinkSettings:
    """What a file sink does with its files."""

    directory: str
    writers: BulkWriterFactory
    buckets: BucketAssigner = field(default_factory=BasePathBucketAssigner)
    rolling: RollingPolicy = field(default_factory=RollingPolicy)
    names: OutputFileConfig = field(default_factory=OutputFileConfig)
    check_interval_ms: int = 60_000
    compaction: tuple[FileCompactStrategy, FileCompactor] | None = None


class PartFileSink(Sink):
    """Writes records to files, each visible once and whole."""

    def __init__(self, settings: FileSinkSettings) -> None:
        self._settings = settings

    def for_type(self, declared: TypeInformation | None) -> PartFileSink:
        writers = self._settings.writers
        if not isinstance(writers, RowWriterFactory):
            return self
        typed = copy.copy(self)
        typed._settings = replace(self._settings, writers=writers.for_type(declared))
        return typed

    def create_writer(self, context: WriterContext) -> SinkWriter:
        return _FileWriter(self._settings, context)

    def create_committer(self, context: CommitterContext) -> Committer:
        owner = _owner(self._settings.names.part_prefix, context.job_id, context.uid)
        uploads = uploads_for(self._settings.directory)
        if uploads is not None:
            return MultipartCommitter(uploads, owner.removeprefix("."), context.last_attempt)
        fs, directory = renaming_filesystem(self._settings.directory)
        committer = _FileCommitter(fs, directory, owner, context.last_attempt)
        if self._settings.compaction is None:
            return committer
        compacting = CompactingCommitter(fs, directory, owner, *self._settings.compaction)
        return _Both(compacting, committer)


def _owner(prefix: str, job_id: str, uid: str) -> str:
    """The start of the name of every unfinished file of one sink of one job.

    Finished ones, and uploads, are called the same without the dot.
    """
    # A digest: uids that people choose often begin alike, and sinks may share a directory.
    sink = hashlib.sha256(f"{job_id} {uid}".encode()).hexdigest()[:8]
    return f".{prefix}-{job_id[:8]}-{sink}-"


def _storage(directory: str) -> PartStorage:
    uploads = uploads_for(directory)
    return MultipartParts(uploads) if uploads is not None else RenamedParts(directory)


class _Part:
    """A file that is being written, or that waits for its checkpoint."""

    def __init__(
        self,
        bucket: str,
        stream: PartStream,
        writers: BulkWriterFactory,
        largest: int,
        now_ms: int,
    ) -> None:
        self.stream = stream
        self.bucket = bucket
        self.begun_ms = self.last_ms = now_ms
        self.size = self.last_size = 0
        self.is_full = False
        self._largest = largest
        self.writer: BulkWriter = writers.create(self._write)
        self.writer.buffer_bytes = min(self.writer.buffer_bytes, largest)
        self.add_element = self.writer.add_element

    def _write(self, data: bytes) -> None:
        self.stream.write(data)
        self.size += len(data)
        self.is_full = self.size >= self._largest


class _FileWriter(SinkWriter):
    def __init__(self, settings: FileSinkSettings, context: WriterContext) -> None:
        self._settings = settings
        self._storage = _storage(settings.directory)
        owner = _owner(settings.names.part_prefix, context.job_id, context.uid)
        self._stem = f"{owner.removeprefix('.')}{context.attempt}-{context.subtask}"
        self._clock = context.clock
        self._context = BucketContext(context.clock)
        self._count = 0
        self._parts: dict[str, _Part] = {}
        self._base: _Part | None = None
        self._ended: list[_Part] = []
        self._checked_ms = self._clock.now_ms()
        self._base_only = isinstance(settings.buckets, BasePathBucketAssigner)

    def write(self, value: object) -> None:
        # Called for every record, so the most common case, one open file, costs one call.
        part = self._base
        if part is None:
            part = self._part_for(value)
        part.add_element(value)
        if part.is_full:
            self._end(part)

    def _part_for(self, value: object) -> _Part:
        bucket = self._settings.buckets.get_bucket_id(value, self._context)
        part = self._parts.get(bucket)
        if part is None:
            if len(self._parts) >= self._storage.most_open:
                # The oldest: buckets mostly follow time, or are too many for files of any size.
                self._end(next(iter(self._parts.values())))
            part = self._parts[bucket] = self._begin(checked_bucket(bucket))
            if self._base_only:
                self._base = part
        return part

    def _begin(self, bucket: str) -> _Part:
        name = f"{self._stem}-{self._count}{self._settings.names.part_suffix}"
        self._count += 1
        stream = self._storage.begin(name, bucket)
        writers, largest = self._settings.writers, self._settings.rolling.part_size or sys.maxsize
        return _Part(bucket, stream, writers, largest, self._clock.now_ms())

    def _end(self, part: _Part) -> None:
        del self._parts[part.bucket]
        self._base = None
        self._ended.append(part)
        part.writer.finish()
        # Those that ended are settled by the next checkpoint, off the loop; only what is too many
        # is before.
        if len(self._ended) >= self._storage.most_open:
            self._ended[-self._storage.most_open].stream.settle()

    def flush(self) -> None:
        now = self._clock.now_ms()
        for part in self._parts.values():
            part.writer.flush()
            if part.size != part.last_size:
                part.last_size, part.last_ms = part.size, now
        if now - self._checked_ms >= self._settings.check_interval_ms:
            self._checked_ms = now
            for part in list(self._parts.values()):
                if self._settings.rolling.too_old(now, part.begun_ms, part.last_ms):
                    self._end(part)

    def prepare_commit(self) -> Callable[[], list[Plain]]:
        for part in list(self._parts.values()):
            self._end(part)
        ended, self._ended = self._ended, []

        def finish() -> list[Plain]:
            for part in ended:
                part.stream.end()
            for part in ended:
                part.stream.settle()
            return [{**part.stream.committable(), "size": part.size} for part in ended]

        return finish

    def close(self) -> None:
        for part in (*self._parts.values(), *self._ended):
            # Nothing of it will be seen; a disk that is full says so again here.
            with contextlib.suppress(StorageError):
                part.stream.close()
        self._storage.close()


class _FileCommitter(Committer):
    def __init__(self, fs: FileSystem, directory: str, owner: str, last_attempt: int) -> None:
        self._fs = fs
        self._directory = directory
        self._owner = owner
        self._last_attempt = last_attempt

    def commit(self, committables: list[Plain]) -> None:
        for part in renamed_parts(self._fs, self._directory, committables):
            path, final = part["from"], part["to"]
            try:
                self._fs.rename(path, final)
            except StorageError as error:
                gone = isinstance(error.__cause__, FileNotFoundError)
                if gone and self._fs.exists(final):
                    continue
                if gone:
                    raise SinkError(
                        f"{path} was prepared by a checkpoint and is gone: its records are lost"
                    ) from error
                raise

    def visible(self, committables: list[Plain]) -> list[Plain]:
        return [part for part in committables if self._fs.exists(part["to"])]

    def abort_others(self, keep: list[Plain]) -> None:
        kept = {part["from"] for part in keep}
        for name in self._fs.list(self._directory):
            path = f"{self._directory}/{name}"
            ours = is_unfinished(name, self._owner, self._last_attempt)
            if ours and name.endswith(SUFFIX) and path not in kept:
                self._fs.delete(path)


class _Both(Committer):
    """Commits by compaction; unfinished files go the same way as without it."""

    def __init__(self, compacting: CompactingCommitter, plain: _FileCommitter) -> None:
        self._compacting = compacting
        self._plain = plain

    def commit(self, committables: list[Plain]) -> None:
        self._compacting.commit(committables)

    def abort_others(self, keep: list[Plain]) -> None:
        self._plain.abort_others(keep)
        self._compacting.abort_others(keep)
