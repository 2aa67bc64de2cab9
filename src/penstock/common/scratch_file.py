"""A file that nobody else sees, for bytes that are too many to be held in memory.

The file has no name. It is gone with the last one who may read it, and with the process, however
that ends. It lies where temporary files go, which TMPDIR in the environment says.

>>> scratch = ScratchFile()
>>> scratch.append([b"first", b"second"]), scratch.append([b"third"])
(0, 11)
>>> scratch.read(5, 6)
b'second'
"""

from __future__ import annotations

import os
import tempfile
import weakref
from collections.abc import Iterable, Iterator

_WORTH = 1 << 18
"""Fewer bytes than that are not worth a call to the system."""


class ScratchFile:
    """A file to append to; what is in it may be read from any thread. OSError if it cannot be."""

    def __init__(self) -> None:
        with tempfile.TemporaryFile() as file:
            self._descriptor = os.dup(file.fileno())
        weakref.finalize(self, os.close, self._descriptor)
        self._end = 0

    def append(self, parts: Iterable[bytes]) -> int:
        """Write the parts, one after another; where they begin."""
        start = end = self._end
        for lot in _lots(parts):
            left = memoryview(lot[0] if len(lot) == 1 else b"".join(lot))
            while left:
                written = os.pwrite(self._descriptor, left, end)
                left, end = left[written:], end + written
        # What was written before an error is no part of the file.
        self._end = end
        return start

    def read(self, start: int, size: int) -> bytes:
        return os.pread(self._descriptor, size, start)


def _lots(parts: Iterable[bytes]) -> Iterator[list[bytes]]:
    """The parts, as many at a time as are worth a call to the system."""
    lot: list[bytes] = []
    size = 0
    for part in parts:
        lot.append(part)
        size += len(part)
        if size >= _WORTH:
            yield lot
            lot, size = [], 0
    if lot:
        yield lot
