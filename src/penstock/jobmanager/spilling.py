"""Values in a file of the driver: they take next to no memory until somebody goes through them.

The JobMaster's own thread writes them, one message of a sink at a time. A message has 256 records
or a megabyte, whichever comes first, or one record that is larger: to write it takes the thread a
tenth of a millisecond to a millisecond (measured; 40 ms for a record of 16 MB), less than to
receive it. The system takes the bytes into its cache. Where it makes the thread wait because the
disk does not keep up, sinks get no new credits meanwhile and slow down with it; heartbeats are
answered by another thread.

>>> spill = SpillFile()
>>> first, second = spill.put([b"a", b"b"]), spill.put([b"c"])
>>> list(second), list(first)
([b'c'], [b'a', b'b'])
"""

from __future__ import annotations

import pickle
import tempfile
from collections.abc import Iterator
from typing import Any

from penstock.common.scratch_file import ScratchFile
from penstock.errors import StorageError


class SpillFile:
    """A file to append values to; what is in it may be read from any thread."""

    def __init__(self) -> None:
        try:
            self._file = ScratchFile()
        except OSError as error:
            raise _refused(error) from error

    def put(self, values: list[Any]) -> Spilled:
        """Write `values`; StorageError if there is no room."""
        data = pickle.dumps(values, protocol=5)
        try:
            return Spilled(self, self._file.append([data]), len(data))
        except OSError as error:
            raise _refused(error) from error

    def read(self, start: int, size: int) -> bytes:
        try:
            return self._file.read(start, size)
        except OSError as error:
            raise StorageError(f"results cannot be read back from their file: {error}") from error


class Spilled:
    """Values that are read from their file each time one goes through them."""

    __slots__ = ("_file", "_size", "_start")

    def __init__(self, file: SpillFile, start: int, size: int) -> None:
        self._file = file
        self._start = start
        self._size = size

    def __iter__(self) -> Iterator[Any]:
        values: list[Any] = pickle.loads(self._file.read(self._start, self._size))
        return iter(values)


def _refused(error: OSError) -> StorageError:
    return StorageError(
        "results that wait for a checkpoint cannot be written to a file in "
        f"{tempfile.gettempdir()}: {error.strerror}; make room there, let TMPDIR name another "
        "folder in the driver's environment, or take checkpoints more often"
    )
