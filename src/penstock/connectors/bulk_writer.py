"""Files that are nothing but their records, one after another, each encoded by itself."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from penstock.common.bulk_writer import BulkWriter, BulkWriterFactory, Write
from penstock.common.serialization import LineEncoder
from penstock.common.typeinfo.base import TypeInformation, shorten
from penstock.errors import RecordError, ResultShapeError

__all__ = ["BulkWriter", "BulkWriterFactory", "RowWriterFactory", "Write"]


class RowWriterFactory(BulkWriterFactory):
    """Writers of records that `encode` has turned into bytes."""

    def __init__(self, encode: Callable[[Any], bytes]) -> None:
        self._encode = encode

    def for_type(self, declared: TypeInformation | None) -> RowWriterFactory:
        """The same for records of this type, which lines of text show."""
        encoder = getattr(self._encode, "__self__", None)
        if isinstance(encoder, LineEncoder):
            return RowWriterFactory(encoder.for_type(declared).encode)
        return self

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
