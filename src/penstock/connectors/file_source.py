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
_BLOCK_BYTES = 64 * 1024


class TextFileSource(Source):
    """The lines of files and of all files in folders, without their line ends."""

    def __init__(self, paths: list[str], encoding: str = "utf-8") -> None:
        self._paths = paths
        self._encoding = encoding
        # Fail where the program is written, not later in a slot.
        try:
            splittable = "\n".encode(encoding) == b"\n"
        except LookupError as error:
            raise ProgramError(f"there is no charset {encoding}") from error
        if not splittable:
            raise ProgramError(f"text files in {encoding} cannot be split into lines; use UTF-8")
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
    """Reads blocks of whole lines and hands their lines out; splitting a block is one call."""

    def __init__(self, encoding: str) -> None:
        self._encoding = encoding
        self._splits: list[dict[str, Any]] = []
        self._file: IO[bytes] | None = None
        self._lines: list[str] = []
        self._next = 0
        self._terminated = True
        self._returns = False

    def add_splits(self, splits: list[Plain]) -> None:
        self._splits.extend(dict(split) for split in splits)

    def poll(self, limit: int) -> list[Any] | None:
        while self._next >= len(self._lines):
            if not self._splits:
                return None
            if not self._read_block(self._splits[0]):
                self._splits.pop(0)
                self._close_file()
        start, self._next = self._next, min(self._next + limit, len(self._lines))
        lines = self._lines[start : self._next]
        return [line.removesuffix("\r") for line in lines] if self._returns else lines

    def _read_block(self, split: dict[str, Any]) -> bool:
        """Read on to the end of the line in which the next block ends; False at the end."""
        file = self._file or self._open(split)
        left = split["end"] - split["position"]
        block = file.read(min(_BLOCK_BYTES, left)) if left > 0 else b""
        if not block:
            return False
        if not block.endswith(b"\n"):
            block += file.readline()
        try:
            # A whole block at once: one call instead of one per line.
            text = block.decode(self._encoding)
        except UnicodeDecodeError as error:
            raise RecordError(
                f"{split['file']}, at byte {split['position'] + error.start}: a line is not "
                f"{self._encoding}: {error}"
            ) from error
        split["position"] += len(block)
        self._lines, self._next = text.split("\n"), 0
        self._terminated = text.endswith("\n")
        self._returns = "\r" in text
        if self._terminated:
            self._lines.pop()
        return True

    def _open(self, split: dict[str, Any]) -> IO[bytes]:
        try:
            self._file = file = open(split["file"], "rb")  # noqa: SIM115
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
        splits = [dict(split) for split in self._splits]
        if splits:
            # The block at hand was read whole; what is not handed out yet lies before its end.
            rest = self._lines[self._next :]
            if rest:
                text = "\n".join(rest) + "\n" * self._terminated
                splits[0]["position"] -= len(text.encode(self._encoding))
        return splits

    def close(self) -> None:
        self._close_file()


def _visible(path: str) -> bool:
    return not os.path.basename(path).startswith((".", "_"))
