"""What writes the inside of a file: a record after another, or a whole format with a footer."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any

from penstock.common.typeinfo.base import shorten
from penstock.errors import RecordError, ResultShapeError

Write = Callable[[bytes], None]


class BulkWriter(ABC):
    """Writes one file, from its first byte to its last."""

    buffer_bytes = 64 * 1024
    """How much a writer may hold back; the sink lowers it where files are to be small."""

    @abstractmethod
    def add_element(self, value: Any) -> None:
        """Take one record: keep a copy, not the record itself."""

    def flush(self) -> None:
        """Write what can be written before the end."""

    @abstractmethod
    def finish(self) -> None:
        """Write what is left, footers included; nothing is added after this."""


class BulkWriterFactory(ABC):
    """Makes the writer of each new file; it is pickled into the job."""

    @abstractmethod
    def create(self, write: Write) -> BulkWriter:
        """A writer that appends to a new file with `write`."""


class RowWriterFactory(BulkWriterFactory):
    """Files that are nothing but their records, one after another, each encoded by itself."""

    def __init__(self, encode: Callable[[Any], bytes]) -> None:
        self._encode = encode

    def create(self, write: Write) -> BulkWriter:
        return _RowWriter(self._encode, write)


class _RowWriter(BulkWriter):
    def __init__(self, encode: Callable[[Any], bytes], write: Write) -> None:
        self._encode = encode
        self._write = write
        self._gathered: list[bytes] = []
        self._size = 0

    def add_element(self, value: Any) -> None:
        try:
            data = self._encode(value)
        except UnicodeEncodeError as error:
            raise RecordError(f"a record cannot be written: {error}: {shorten(value)}") from error
        if type(data) is not bytes:
            raise ResultShapeError(f"an encoder must return bytes, not {type(data).__name__}")
        self._gathered.append(data)
        self._size += len(data)
        if self._size >= self.buffer_bytes:
            self.flush()

    def flush(self) -> None:
        if self._gathered:
            data, self._gathered, self._size = b"".join(self._gathered), [], 0
            self._write(data)

    def finish(self) -> None:
        self.flush()
