"""CSV files as output: a header in every file, and a row per record."""

from __future__ import annotations

import csv
import io
from collections.abc import Mapping, Sequence
from typing import Any

from penstock.common.typeinfo.base import shorten
from penstock.connectors.bulk_writer import BulkWriter, BulkWriterFactory, Write
from penstock.errors import ProgramError, RecordError


class CsvWriterFactory(BulkWriterFactory):
    """Records are dicts with exactly these columns, or sequences of as many fields.

    `dialect` and the parameters after it are those of Python's `csv` module.
    """

    def __init__(
        self,
        columns: Sequence[str],
        header: bool = True,
        charset: str = "utf-8",
        dialect: Any = "excel",
        **parameters: Any,
    ) -> None:
        if not columns:
            raise ProgramError("a CSV file needs columns")
        try:
            known = csv.writer(io.StringIO(), dialect, **parameters).dialect
            "".encode(charset)
        except (csv.Error, TypeError, LookupError) as error:
            raise ProgramError(f"CSV cannot be written like this: {error}") from error
        # A dialect's name is known in this process only: what it means travels.
        names = [name for name in dir(csv.Dialect) if not name.startswith("_")]
        self._dialect = {name: getattr(known, name) for name in names}
        self._columns = list(columns)
        self._header = header
        self._charset = charset

    def create(self, write: Write) -> BulkWriter:
        return _CsvWriter(self._columns, self._header, self._charset, self._dialect, write)


class _CsvWriter(BulkWriter):
    def __init__(
        self,
        columns: list[str],
        header: bool,
        charset: str,
        dialect: dict[str, Any],
        write: Write,
    ) -> None:
        self._columns = columns
        self._charset = charset
        self._write = write
        self._text = io.StringIO(newline="")
        self._rows = csv.writer(self._text, **dialect)
        if header:
            self._rows.writerow(columns)

    def add_element(self, value: Any) -> None:
        fields = self._fields(value)
        try:
            self._rows.writerow(fields)
        except csv.Error as error:
            raise RecordError(
                f"a record cannot be written as CSV: {error}: {shorten(value)}"
            ) from error
        if self._text.tell() >= self.buffer_bytes:
            self.flush()

    def _fields(self, value: Any) -> list[Any]:
        if isinstance(value, Mapping):
            if len(value) == len(self._columns) and all(name in value for name in self._columns):
                return [value[name] for name in self._columns]
            raise RecordError(
                f"a record has the columns {sorted(map(str, value))} and not {self._columns}: "
                f"{shorten(value)}"
            )
        if isinstance(value, str | bytes) or not isinstance(value, Sequence):
            raise RecordError(
                f"a row of CSV is a dict or a sequence, not {type(value).__name__}: "
                f"{shorten(value)}"
            )
        if len(value) != len(self._columns):
            raise RecordError(
                f"a record has {len(value)} fields and not {len(self._columns)}: {shorten(value)}"
            )
        return list(value)

    def flush(self) -> None:
        if self._text.tell():
            data = self._encoded(self._text.getvalue())
            self._text.seek(0)
            self._text.truncate()
            self._write(data)

    def _encoded(self, text: str) -> bytes:
        # Rows are encoded together, for speed: which of them cannot be is found out afterwards.
        try:
            return text.encode(self._charset)
        except UnicodeEncodeError as error:
            begin = text.rfind("\n", 0, error.start) + 1
            end = text.find("\n", error.start)
            row = text[begin : end if end >= 0 else None].rstrip("\r")
            raise RecordError(
                f"a record cannot be written as {self._charset}: {shorten(row)}, "
                f"because of {text[error.start]!r}"
            ) from error

    def finish(self) -> None:
        self.flush()
