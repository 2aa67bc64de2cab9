"""Files as a source: what is there when the job starts, or whatever appears in folders.

How a file is read is its format's business (`penstock.connectors.file_format`); this is about
which files there are and who reads what.
"""

from __future__ import annotations

import os
from dataclasses import dataclass

from penstock.common.plain import Plain
from penstock.connectors.file_discovery import DiscoveringEnumerator
from penstock.connectors.file_format import FileFormat
from penstock.connectors.file_listing import list_files
from penstock.connectors.source import (
    EnumeratorContext,
    QueueEnumerator,
    ReaderContext,
    Source,
    SourceReader,
    SplitEnumerator,
)
from penstock.errors import ProgramError, StorageError

MIN_SPLIT_BYTES = 1 << 20
MAX_SPLIT_BYTES = 64 << 20


@dataclass(frozen=True)
class Cutting:
    """How files are cut into splits for a number of readers."""

    format: FileFormat
    parallelism: int
    whole_files: bool

    def splits(self, files: list[str]) -> list[Plain]:
        """The splits of all `files`."""
        try:
            return self._splits(files)
        except OSError as error:
            raise StorageError(f"cannot look at {error.filename}: {error.strerror}") from error

    def _splits(self, files: list[str]) -> list[Plain]:
        total = sum(os.path.getsize(file) for file in files)
        # A few splits per reader, so that a slow one does not hold up the end.
        share = total // (self.parallelism * 4) + 1
        size = None if self.whole_files else max(MIN_SPLIT_BYTES, min(MAX_SPLIT_BYTES, share))
        return [split for file in files for split in self.format.splits(file, size)]


class FilesSource(Source):
    """The records of files and of all files in folders, in a format.

    Without an interval it ends with the files that are there at the start; with one it looks for
    new files every `interval_ms` milliseconds and never ends.
    """

    def __init__(
        self,
        paths: list[str],
        format: FileFormat,
        whole_files: bool = False,
        interval_ms: int | None = None,
    ) -> None:
        if not paths:
            raise ProgramError("a file source needs a file or a folder to read")
        if interval_ms is not None and interval_ms <= 0:
            raise ProgramError(f"a folder cannot be looked at every {interval_ms} ms")
        self._paths = [path.removeprefix("file://") for path in paths]
        self._format = format
        self._whole_files = whole_files
        self._interval_ms = interval_ms
        # Fail where the program is written, not later in the driver's background.
        list_files(self._paths)

    def create_enumerator(
        self, context: EnumeratorContext, restored: Plain | None
    ) -> SplitEnumerator:
        cutting = Cutting(self._format, context.parallelism, self._whole_files)
        if self._interval_ms is not None:
            return DiscoveringEnumerator(self._paths, cutting.splits, self._interval_ms, restored)
        if restored is not None:
            return QueueEnumerator(restored)
        return QueueEnumerator(cutting.splits([found.path for found in list_files(self._paths)]))

    def create_reader(self, context: ReaderContext) -> SourceReader:
        return self._format.create_reader()
