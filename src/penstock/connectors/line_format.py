"""Files of lines: one record per line, split by byte ranges.

A split is (file, end, position). A line belongs to the split in which it begins, so a reader that
starts in the middle of a file first skips to the next line, and reads the last line that begins
before its end to where it stops.
"""

from __future__ import annotations

import os
from typing import IO, Any

from penstock.common.plain import Plain
from penstock.connectors.file_format import FileFormat
from penstock.connectors.source import SourceReader
from penstock.errors import ProgramError, RecordError, StorageError

_BLOCK_BYTES = 64 * 1024


class LineFormat(FileFormat):
    """Every line is a record, without its line end."""

    def __init__(self, charset: str = "utf-8") -> None:
        self._charset = checked_charset(charset)

    def splits(self, file: str, split_bytes: int | None) -> list[Plain]:
        length = os.path.getsize(file)
        step = max(1, length) if split_bytes is None else split_bytes
        return [
            {
                "file": file,
                "end": min(start + step, length),
                "position": start,
                "begun": start == 0,
            }
            for start in range(0, length, step)
        ]

    def create_reader(self) -> SourceReader:
        return LineReader(self._charset)


def checked_charset(charset: str) -> str:
    """`charset`, if files in it can be cut at newlines; else an error, before the job starts."""
    try:
        has_lines = "\n".encode(charset) == b"\n"
    except LookupError as error:
        raise ProgramError(f"there is no charset {charset}") from error
    if not has_lines:
        raise ProgramError(f"text files in {charset} cannot be split into lines; use UTF-8")
    return charset


class LineReader(SourceReader):
    """Reads blocks of whole lines and hands their lines out; splitting a block is one call."""

    def __init__(self, charset: str) -> None:
        self._charset = charset
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
        if left <= 0:
            return False
        block = file.read(min(_BLOCK_BYTES, left))
        if not block:
            raise StorageError(
                f"{split['file']} has become shorter while it was read: {left} bytes are gone"
            )
        if not block.endswith(b"\n"):
            block += file.readline()
        try:
            # A whole block at once: one call instead of one per line.
            text = block.decode(self._charset)
        except UnicodeDecodeError as error:
            place = f"{split['file']}, at byte {split['position'] + error.start}"
            what = f"a line is not {self._charset}: {error}"
            raise RecordError(f"{place}: {what}", place) from error
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
        self._opened(file, split)
        return file

    def _opened(self, file: IO[bytes], split: dict[str, Any]) -> None:
        """For formats that want to look at the start of the file; may move the position on."""

    def _close_file(self) -> None:
        if self._file is not None:
            self._file.close()
            self._file = None

    def snapshot(self) -> list[Plain]:
        splits = [dict(split) for split in self._splits]
        if splits:
            splits[0]["position"] = self._byte_of(self._next)
        return splits

    def _byte_of(self, index: int) -> int:
        """Where line `index` of the block at hand begins, in its file."""
        position: int = self._splits[0]["position"]
        rest = self._lines[index:]
        if not rest:
            return position
        # The block was read whole: what comes from here on lies before its end.
        text = "\n".join(rest) + "\n" * self._terminated
        return position - len(text.encode(self._charset))

    def _place_of(self, index: int) -> tuple[str, str]:
        """File and line of line `index` of the block at hand, for messages."""
        file, left, number = self._splits[0]["file"], self._byte_of(index), 1
        with open(file, "rb") as content:
            while left > 0 and (block := content.read(min(left, 1 << 20))):
                number += block.count(b"\n")
                left -= len(block)
        return file, f"line {number}"

    def close(self) -> None:
        self._close_file()
