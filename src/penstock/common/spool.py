"""Bytes that wait to be written: some in memory, and all others in a file.

Whoever encodes much before the first byte can be written keeps the parts here. They have their
sizes at once, and are read again when their turn has come, as often as need be.

>>> spool = Spool(in_memory=8)
>>> parts = [*spool.keep([b"small"]), *spool.keep([b"much ", b"larger"])]
>>> [type(part).__name__ for part in parts], sum(map(len, parts))
(['bytes', 'Spooled'], 16)
>>> list(chunks_of(parts)), whole(parts)
([b'small', b'much larger'], b'smallmuch larger')
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator, Sequence

from penstock.common.scratch_file import ScratchFile
from penstock.errors import StorageError

log = logging.getLogger(__name__)

IN_MEMORY = 1 << 24
"""So many bytes wait in memory."""
CHUNK = 1 << 20
"""So many bytes are read from the file at a time."""


class Spooled:
    """Some bytes that wait in a file."""

    __slots__ = ("_file", "_size", "_start")

    def __init__(self, file: ScratchFile, start: int, size: int) -> None:
        self._file = file
        self._start = start
        self._size = size

    def __len__(self) -> int:
        return self._size

    def chunks(self) -> Iterator[bytes]:
        """All of them, some at a time."""
        at, end = self._start, self._start + self._size
        while at < end:
            try:
                chunk = self._file.read(at, min(CHUNK, end - at))
            except OSError as error:
                raise _unreadable(error.strerror) from error
            if not chunk:
                raise _unreadable("it ends early")
            at += len(chunk)
            yield chunk


Part = bytes | Spooled
"""Bytes, here or in the file of a spool."""


class Spool:
    """Keeps parts of what is to be written; the file is gone with the last part that is in it.

    Where no file can be written everything stays in memory: a disk that is full costs memory, and
    not a checkpoint.
    """

    def __init__(self, in_memory: int = IN_MEMORY) -> None:
        self.limit = in_memory
        """Whoever gathers more than that before it is kept should `put` it."""
        self._room = in_memory
        self._file: ScratchFile | None = None
        self._refused = False

    def keep(self, parts: Sequence[Part]) -> Sequence[Part]:
        """The same bytes, in memory as long as there is room."""
        size = sum(len(part) for part in parts if isinstance(part, bytes))
        if size <= self._room:
            self._room -= size
            return parts
        return self.put(parts)

    def put(self, parts: Iterable[Part]) -> list[Part]:
        """The same bytes, all of them in the file."""
        kept: list[Part] = []
        run: list[bytes] = []
        for part in parts:
            if isinstance(part, bytes):
                run.append(part)
            else:
                kept += [*self._written(run), part]
                run = []
        return [*kept, *self._written(run)]

    def _written(self, parts: list[bytes]) -> Sequence[Part]:
        size = sum(map(len, parts))
        if self._refused or not size:
            return parts
        try:
            if self._file is None:
                self._file = ScratchFile()
            return [Spooled(self._file, self._file.append(parts), size)]
        except OSError as error:
            self._refused = True
            log.warning(
                "state on its way to a checkpoint stays in memory, there is no room for it in a "
                "temporary file: %s; TMPDIR says where those go",
                error,
            )
            return parts


def chunks_of(parts: Iterable[Part]) -> Iterator[bytes]:
    """The bytes of the parts, none of which is many if it was in a file."""
    for part in parts:
        if isinstance(part, bytes):
            yield part
        else:
            yield from part.chunks()


def whole(parts: Iterable[Part]) -> bytes:
    """The bytes of all parts."""
    return b"".join(chunks_of(parts))


def _unreadable(why: str | None) -> StorageError:
    return StorageError(f"state on its way to a checkpoint cannot be read back: {why}")
