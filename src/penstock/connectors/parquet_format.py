"""Parquet files: a row is a dict by column; files are split by row groups. Needs pyarrow."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from penstock.common.plain import Plain
from penstock.connectors.file_format import FileFormat
from penstock.connectors.source import SourceReader
from penstock.errors import ProgramError, RecordError, StorageError

_BATCH = 1024


class ParquetFormat(FileFormat):
    """Every row is a record; only `columns`, in their order, if any are named."""

    def __init__(self, columns: Sequence[str] | None = None) -> None:
        self._columns = None if columns is None else list(columns)
        import_parquet()

    def splits(self, file: str, split_bytes: int | None) -> list[Plain]:
        with _open(file) as parquet:
            groups = parquet.metadata.num_row_groups
        step = max(1, groups) if split_bytes is None else 1
        return [
            {"file": file, "group": group, "end": min(group + step, groups), "row": 0}
            for group in range(0, groups, step)
        ]

    def create_reader(self) -> SourceReader:
        return _ParquetReader(self._columns)


class _ParquetReader(SourceReader):
    """A split is the row groups from `group` to `end`, and how many rows of `group` are read."""

    def __init__(self, columns: list[str] | None) -> None:
        self._columns = columns
        self._splits: list[dict[str, Any]] = []
        self._parquet: Any = None
        self._batches: Iterator[Any] | None = None
        self._rows: list[Any] = []
        self._next = 0

    def add_splits(self, splits: list[Plain]) -> None:
        self._splits.extend(dict(split) for split in splits)

    def poll(self, limit: int) -> list[Any] | None:
        while self._next >= len(self._rows):
            if not self._splits:
                return None
            self._advance(self._splits[0])
        rows = self._rows[self._next : self._next + limit]
        self._next += len(rows)
        self._splits[0]["row"] += len(rows)
        return rows

    def _advance(self, split: dict[str, Any]) -> None:
        """To the next batch of rows, the next row group, or the next split."""
        self._rows, self._next = [], 0
        if split["group"] >= split["end"]:
            self._splits.pop(0)
            self.close()
            return
        try:
            skip = split["row"] if self._batches is None else 0
            batch = next(self._batches or self._begin(split), None)
            while batch is not None and skip >= batch.num_rows:
                skip -= batch.num_rows
                batch = next(self._batches or iter(()), None)
            if batch is not None:
                self._rows, self._next = batch.to_pylist(), skip
                return
        except (OSError, ValueError, NotImplementedError) as error:
            place = f"{split['file']}, row group {split['group']}, row {split['row']}"
            raise RecordError(f"{place}: cannot be read: {error}", place) from error
        self._batches = None
        split["group"], split["row"] = split["group"] + 1, 0

    def _begin(self, split: dict[str, Any]) -> Iterator[Any]:
        if self._parquet is None:
            self._parquet = _open(split["file"])
            names = self._parquet.schema_arrow.names
            missing = [name for name in self._columns or () if name not in names]
            if missing:
                raise RecordError(f"{split['file']} has no column {', '.join(missing)}")
        batches: Iterator[Any] = self._parquet.iter_batches(
            batch_size=_BATCH, row_groups=[split["group"]], columns=self._columns
        )
        self._batches = batches
        return batches

    def snapshot(self) -> list[Plain]:
        return [dict(split) for split in self._splits]

    def close(self) -> None:
        self._batches = None
        if self._parquet is not None:
            self._parquet.close()
            self._parquet = None


def import_parquet() -> Any:
    """The module, imported when it is needed: it is large, and an extra."""
    try:
        import pyarrow.parquet
    except ImportError as error:
        raise ProgramError("Parquet needs pyarrow: pip install 'penstock[parquet]'") from error
    return pyarrow.parquet


def _open(file: str) -> Any:
    parquet = import_parquet()
    try:
        return parquet.ParquetFile(file)
    except FileNotFoundError as error:
        raise StorageError(f"cannot read {file}: {error.strerror}") from error
    except (OSError, ValueError) as error:
        raise RecordError(f"{file} is not a Parquet file: {error}") from error
