"""Text files as a bounded source: one record per line, split by byte ranges.

A split is (file, start, end, position). A line belongs to the split in which it begins, so a
reader that starts in the middle of a file first skips to the next line, and reads the last line
that begins before its end to where it stops.
"""

from __future__ import annotations

import os
from typing import IO, Any

from penstock.common.plain import Plain
from penstock.connectors.source import (
    EnumeratorContext,
    QueueEnumerator,
    ReaderContext,
    Source,
    SourceReader,
    SplitEnumerator,
)
from penstock.errors import ProgramError, RecordError, StorageError

MIN_SPLIT_BYTES = 1 << 20
MAX_SPLIT_BYTES = 64 << 20


class TextFileSource(Source):
    """The lines of files and of all files in folders, without their line ends."""

    def __init__(self, paths: list[str], encoding: str = "utf-8") -> None:
        self._paths = paths
        self._encoding = encoding
        # Fail where the program is written, not later in a slot.
        self._files()

    def _files(self) -> list[str]:
        found: list[str] = []
        for path in self._paths:
            local = path.removeprefix("file://")
            if os.path.isdir(local):
                inside = (os.path.join(local, name) for name in sorted(os.listdir(local)))
                found.extend(p for p in inside if os.path.isfile(p) and _visible(p))
            elif os.path.isfile(local):
                found.append(local)
            else:
                raise ProgramError(f"there is no file or folder {local}")
        return found

    def create_enumerator(
        self, context: EnumeratorContext, restored: Plain | None
    ) -> SplitEnumerator:
        if restored is not None:
            return QueueEnumerator(restored)
        files = self._files()
        total = sum(os.path.getsize(file) for file in files)
        # A few splits per reader, so that a slow one does not hold up the end.
        size = max(MIN_SPLIT_BYTES, min(MAX_SPLIT_BYTES, total // (context.parallelism * 4) + 1))
        splits = []
        for file in files:
            length = os.path.getsize(file)
            for start in range(0, length, size):
                end = min(start + size, length)
                splits.append({"file": file, "end": end, "position": start, "begun": start == 0})
        return QueueEnumerator(splits)

    def create_reader(self, context: ReaderContext) -> SourceReader:
        return _LineReader(self._encoding)


class _LineReader(SourceReader):
    def __init__(self, encoding: str) -> None:
        self._encoding = encoding
        self._splits: list[dict[str, Any]] = []
        self._file: IO[bytes] | None = None

    def add_splits(self, splits: list[Plain]) -> None:
        self._splits.extend(dict(split) for split in splits)

    def poll(self, limit: int) -> list[Any] | None:
        while self._splits:
            lines = self._read(self._splits[0], limit)
            if lines:
                return lines
            self._splits.pop(0)
            self._close_file()
        return None

    def _read(self, split: dict[str, Any], limit: int) -> list[str]:
        file = self._file or self._open(split)
        position, end = split["position"], split["end"]
        raw: list[bytes] = []
        while position < end and len(raw) < limit:
            line = file.readline()
            if not line:
                break
            position += len(line)
            raw.append(line)
        split["position"] = position
        try:
            return [line.decode(self._encoding).rstrip("\r\n") for line in raw]
        except UnicodeDecodeError as error:
            raise RecordError(
                f"{split['file']}, at or before byte {position}: a line is not {self._encoding}: "
                f"{error}"
            ) from error

    def _open(self, split: dict[str, Any]) -> IO[bytes]:
        try:
            self._file = file = open(split["file"], "rb", buffering=1 << 18)  # noqa: SIM115
        except OSError as error:
            raise StorageError(f"cannot read {split['file']}: {error.strerror}") from error
        if split["begun"]:
            file.seek(split["position"])
        else:
            # One byte back: if a line ends exactly there, the next one is ours.
            file.seek(split["position"] - 1)
            split["position"] += len(file.readline()) - 1
            split["begun"] = True
        return file

    def _close_file(self) -> None:
        if self._file is not None:
            self._file.close()
            self._file = None

    def snapshot(self) -> list[Plain]:
        return [dict(split) for split in self._splits]

    def close(self) -> None:
        self._close_file()


def _visible(path: str) -> bool:
    return not os.path.basename(path).startswith((".", "_"))
