"""An exactly-once file sink: a file becomes visible when the checkpoint that covers it completes.

While it is written a file is called ``.part-....inprogress``; at the barrier it is synced, closed
and named in the checkpoint; once that is complete it is renamed to its final name, without the
leading dot. Readers that skip dot files, as Spark does, never see a half file.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from typing import Any

from penstock.common.filesystem import AppendStream, FileSystem, filesystem_for
from penstock.common.plain import Plain
from penstock.connectors.sink import (
    Committer,
    CommitterContext,
    Sink,
    SinkWriter,
    WriterContext,
)
from penstock.errors import SinkError, StorageError

_SUFFIX = ".inprogress"


def line_encoder(value: Any) -> bytes:
    """A record as a line of text."""
    return f"{value}\n".encode()


class FileSink(Sink):
    """Writes records to files in `directory`, each visible once and whole."""

    def __init__(
        self, directory: str, encoder: Callable[[Any], bytes] = line_encoder, prefix: str = "part"
    ) -> None:
        self._directory = directory
        self._encoder = encoder
        self._prefix = prefix

    def create_writer(self, context: WriterContext) -> SinkWriter:
        fs, directory = filesystem_for(self._directory)
        stem = f"{_owner(self._prefix, context.job_id, context.uid)}{context.attempt}"
        return _FileWriter(fs, f"{directory}/{stem}-{context.subtask}", self._encoder)

    def create_committer(self, context: CommitterContext) -> Committer:
        fs, directory = filesystem_for(self._directory)
        owner = _owner(self._prefix, context.job_id, context.uid)
        return _FileCommitter(fs, directory, owner)


def _owner(prefix: str, job_id: str, uid: str) -> str:
    """The start of the name of every unfinished file of one sink of one job."""
    # A digest: uids that people choose often begin alike, and sinks may share a directory.
    sink = hashlib.sha256(f"{job_id} {uid}".encode()).hexdigest()[:8]
    return f".{prefix}-{job_id[:8]}-{sink}-"


class _FileWriter(SinkWriter):
    def __init__(self, fs: FileSystem, stem: str, encoder: Callable[[Any], bytes]) -> None:
        self._fs = fs
        self._stem = stem
        self._encoder = encoder
        self._count = 0
        self._path = ""
        self._stream: AppendStream | None = None
        self._gathered: list[bytes] = []

    def write(self, value: Any) -> None:
        self._gathered.append(self._encoder(value))
        if len(self._gathered) >= 1000:
            self._drain()

    def _drain(self) -> None:
        if not self._gathered:
            return
        if self._stream is None:
            self._path = f"{self._stem}-{self._count}{_SUFFIX}"
            self._count += 1
            self._stream = self._fs.append(self._path)
        data, self._gathered = b"".join(self._gathered), []
        self._stream.write(data)

    def prepare_commit(self) -> Callable[[], list[Plain]]:
        self._drain()
        stream, path = self._stream, self._path
        self._stream = None

        def finish() -> list[Plain]:
            if stream is None:
                return []
            stream.sync()
            stream.close()
            return [path]

        return finish

    def close(self) -> None:
        if self._stream is not None:
            self._stream.close()


class _FileCommitter(Committer):
    def __init__(self, fs: FileSystem, directory: str, owner: str) -> None:
        self._fs = fs
        self._directory = directory
        self._owner = owner

    def commit(self, committables: list[Plain]) -> None:
        for path in committables:
            final = _final_name(path)
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

    def abort_others(self, keep: list[Plain]) -> None:
        for name in self._fs.list(self._directory):
            path = f"{self._directory}/{name}"
            if name.startswith(self._owner) and name.endswith(_SUFFIX) and path not in keep:
                self._fs.delete(path)


def _final_name(path: str) -> str:
    directory, name = path.rsplit("/", 1)
    return f"{directory}/{name.removeprefix('.').removesuffix(_SUFFIX)}"
