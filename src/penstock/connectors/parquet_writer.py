"""Parquet files as output: a row per record, in row groups. Needs pyarrow."""

from __future__ import annotations

import copy
import io
from collections.abc import Mapping
from typing import Any

from penstock.common.typeinfo.base import shorten
from penstock.connectors.bulk_writer import BulkWriter, BulkWriterFactory, Write
from penstock.connectors.parquet_format import import_parquet
from penstock.errors import ProgramError, RecordError

_IMMUTABLE = (int, float, str, bytes, bool, type(None))


class ParquetWriterFactory(BulkWriterFactory):
    """Records are dicts with the columns of `schema`; a column that is missing is null.

    `schema` is a pyarrow schema, or a dict from column to type: a pyarrow type or its name, for
    example ``{"id": "int64", "name": "string"}``.
    """

    def __init__(
        self, schema: Any, row_group_rows: int = 10_000, compression: str = "snappy"
    ) -> None:
        if row_group_rows < 1:
            raise ProgramError(f"a row group cannot have {row_group_rows} rows")
        self._schema = _schema(schema)
        self._row_group_rows = row_group_rows
        self._compression = compression

    def create(self, write: Write) -> BulkWriter:
        return _ParquetWriter(self._schema, self._row_group_rows, self._compression, write)


def _schema(schema: Any) -> Any:
    import_parquet()
    import pyarrow

    if isinstance(schema, pyarrow.Schema):
        return schema
    try:
        types = {
            name: pyarrow.type_for_alias(kind) if isinstance(kind, str) else kind
            for name, kind in schema.items()
        }
        return pyarrow.schema(list(types.items()))
    except (AttributeError, TypeError, ValueError) as error:
        raise ProgramError(f"this is no schema for Parquet: {error}") from error


class _ParquetWriter(BulkWriter):
    def __init__(self, schema: Any, rows: int, compression: str, write: Write) -> None:
        self._schema = schema
        self._most = rows
        self._names = frozenset(schema.names)
        self._columns: dict[str, list[Any]] = {name: [] for name in schema.names}
        self._gathered = 0
        self._writer = import_parquet().ParquetWriter(
            _Stream(write), schema, compression=compression
        )

    def add_element(self, value: Any) -> None:
        if not isinstance(value, Mapping):
            raise RecordError(
                f"a row of Parquet is a dict, not {type(value).__name__}: {shorten(value)}"
            )
        unknown = [name for name in value if name not in self._names]
        if unknown:
            raise RecordError(
                f"a record has columns that the schema has not: {unknown}: {shorten(value)}"
            )
        for name, column in self._columns.items():
            field = value.get(name)
            # A list or a dict may be changed by others before the row group is written.
            column.append(field if type(field) in _IMMUTABLE else copy.deepcopy(field))
        self._gathered += 1
        if self._gathered >= self._most:
            self._write_group()

    def _write_group(self) -> None:
        import pyarrow

        if not self._gathered:
            return
        arrays = [_array(pyarrow, self._columns[field.name], field) for field in self._schema]
        self._columns = {name: [] for name in self._columns}
        self._gathered = 0
        self._writer.write_table(pyarrow.Table.from_arrays(arrays, schema=self._schema))

    def finish(self) -> None:
        self._write_group()
        self._writer.close()


def _array(pyarrow: Any, values: list[Any], field: Any) -> Any:
    try:
        array = pyarrow.array(values, field.type)
    except (ValueError, TypeError, OverflowError) as error:
        # The rows of a group are converted together, for speed: the bad one is found afterwards.
        for value in values:
            try:
                pyarrow.array([value], field.type)
            except (ValueError, TypeError, OverflowError):
                raise RecordError(
                    f"a record's column {field.name} cannot be written as {field.type}: "
                    f"{shorten(value)}"
                ) from error
        raise RecordError(
            f"column {field.name} cannot be written as {field.type}: {error}"
        ) from error
    if array.null_count and not field.nullable:
        raise RecordError(f"a record has no {field.name}, and the schema says that it must")
    return array


class _Stream(io.RawIOBase):
    """What pyarrow takes for a file: bytes go to the sink's."""

    def __init__(self, write: Write) -> None:
        self._append = write
        self._position = 0

    def writable(self) -> bool:
        return True

    def write(self, data: Any) -> int:
        content = bytes(data)
        self._append(content)
        self._position += len(content)
        return len(content)

    def tell(self) -> int:
        return self._position
