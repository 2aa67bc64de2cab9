"""CSV files: with a header, or with columns that the program names.

A quoted field may hold a newline, so nobody can say, from the middle of a file, where a record
begins: a file is one split. A program that knows that its files have no such fields says so with
``quoted_newlines=False``; then files are split by byte ranges, as lines are.
"""

from __future__ import annotations

import csv
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import IO, Any

from penstock.common.plain import Plain
from penstock.connectors.file_format import FileFormat, bad_record
from penstock.connectors.line_format import LineFormat, LineReader, checked_charset
from penstock.connectors.source import SourceReader
from penstock.errors import ProgramError, StorageError

_BYTE_ORDER_MARK = "\ufeff"
"""Spreadsheets put it in front of UTF-8; it is not part of the first column's name."""
_DIALECT = (
    "delimiter",
    "quotechar",
    "escapechar",
    "doublequote",
    "skipinitialspace",
    "quoting",
)


@dataclass(frozen=True)
class _Rules:
    """How a row is read; its fields are checked where the program is written."""

    columns: tuple[str, ...] | None
    header: bool
    types: Mapping[str, Callable[[str], Any]]
    dialect: Mapping[str, Any]
    charset: str

    def rows(self, lines: Iterator[str] | list[str]) -> Iterator[list[str]]:
        return csv.reader(lines, strict=True, **self.dialect)


class CsvFormat(FileFormat):
    """Records are dicts by column, or lists of fields where the columns have no names.

    `header` says that the first row of every file names its columns; `columns` names them where it
    does not, and selects and orders them where it does. `types` gives a function from text to value
    for columns that are not text. `dialect` and the parameters after it are those of Python's
    `csv` module.
    """

    def __init__(
        self,
        columns: Sequence[str] | None = None,
        header: bool = False,
        types: Mapping[str, Callable[[str], Any]] | None = None,
        quoted_newlines: bool = True,
        charset: str = "utf-8",
        dialect: Any = "excel",
        **parameters: Any,
    ) -> None:
        try:
            known = csv.reader([], dialect, **parameters).dialect
        except (csv.Error, TypeError) as error:
            raise ProgramError(f"this is no CSV dialect: {error}") from error
        unnamed = set(types or ()) - set(columns or types or ())
        if unnamed or (types and columns is None and not header):
            names = ", ".join(sorted(unnamed or types or ()))
            raise ProgramError(f"a CSV file has types for {names} and no such columns")
        self._quoted_newlines = quoted_newlines
        self._rules = _Rules(
            None if columns is None else tuple(columns),
            header,
            dict(types or {}),
            # A dialect's name is known in this process only: what it means travels.
            {name: getattr(known, name) for name in _DIALECT},
            checked_charset(charset),
        )

    def splits(self, file: str, split_bytes: int | None) -> list[Plain]:
        if not self._quoted_newlines:
            return LineFormat(self._rules.charset).splits(file, split_bytes)
        return [{"file": file, "position": 0, "line": 0}]

    def create_reader(self) -> SourceReader:
        if self._quoted_newlines:
            return _WholeFileReader(self._rules)
        return _LineByLineReader(self._rules)


class _Columns:
    """Makes records of the rows of one file."""

    def __init__(self, rules: _Rules, header: list[str] | None = None) -> None:
        names = header if header is not None else rules.columns
        self._width = None if names is None else len(names)
        index = {name: n for n, name in enumerate(names or ())}
        if len(index) < (self._width or 0):
            raise ValueError("two columns have the same name")
        wanted = rules.columns or names or ()
        missing = [name for name in {**dict.fromkeys(wanted), **rules.types} if name not in index]
        if missing:
            raise ValueError(f"the header has no column {', '.join(missing)}")
        self._picked = [(name, index[name], rules.types.get(name)) for name in wanted]

    def record(self, row: list[str]) -> Any:
        """The record of a row; ValueError says what is wrong with it."""
        if self._width is None:
            return row
        if len(row) != self._width:
            raise ValueError(f"a row has {len(row)} fields and not {self._width}")
        record = {}
        for name, index, convert in self._picked:
            try:
                record[name] = row[index] if convert is None else convert(row[index])
            except Exception as error:
                raise ValueError(f"column {name} cannot be read: {error}") from error
        return record


class _WholeFileReader(SourceReader):
    """Reads files from front to back, a row at a time, over newlines in quotes."""

    def __init__(self, rules: _Rules) -> None:
        self._rules = rules
        self._splits: list[dict[str, Any]] = []
        self._file: IO[bytes] | None = None
        self._rows: Iterator[list[str]] = iter(())
        self._columns: _Columns | None = None
        self._last_line = ""

    def add_splits(self, splits: list[Plain]) -> None:
        self._splits.extend(dict(split) for split in splits)

    def poll(self, limit: int) -> list[Any] | None:
        while self._splits:
            split = self._splits[0]
            if self._file is None:
                self._open(split)
            records: list[Any] = []
            while len(records) < limit and (row := self._next_row(split)) is not None:
                if row:
                    assert self._columns is not None
                    records.append(self._checked(split, self._columns.record, row))
            if records:
                return records
            self._splits.pop(0)
            self.close()
        return None

    def _open(self, split: dict[str, Any]) -> None:
        position, line = split["position"], split["line"]
        split["position"] = split["line"] = 0
        try:
            self._file = open(split["file"], "rb")  # noqa: SIM115
        except OSError as error:
            raise StorageError(f"cannot read {split['file']}: {error.strerror}") from error
        self._rows = self._rules.rows(self._lines(self._file, split))
        header = self._next_row(split) if self._rules.header else None
        if header is not None or not self._rules.header:
            self._columns = self._checked(split, lambda row: _Columns(self._rules, row), header)
        if position > split["position"]:
            self._file.seek(position)
            split["position"], split["line"] = position, line

    def _lines(self, file: IO[bytes], split: dict[str, Any]) -> Iterator[str]:
        """The lines of the file; the split is always behind the last one that was taken."""
        while raw := file.readline():
            split["position"] += len(raw)
            split["line"] += 1
            try:
                self._last_line = raw.decode(self._rules.charset)
            except UnicodeDecodeError as error:
                what = f"a line is not {self._rules.charset}: {error}"
                raise bad_record(split["file"], f"line {split['line']}", what, raw) from error
            if split["line"] == 1:
                self._last_line = self._last_line.removeprefix(_BYTE_ORDER_MARK)
            yield self._last_line

    def _next_row(self, split: dict[str, Any]) -> list[str] | None:
        first = split["line"] + 1
        try:
            return next(self._rows, None)
        except csv.Error as error:
            what = f"a row that begins here is not CSV: {error}"
            raise bad_record(split["file"], f"line {first}", what, self._last_line) from error

    def _checked(self, split: dict[str, Any], make: Callable[[Any], Any], row: Any) -> Any:
        try:
            return make(row)
        except ValueError as error:
            raise bad_record(split["file"], f"line {split['line']}", str(error), row) from error

    def snapshot(self) -> list[Plain]:
        return [dict(split) for split in self._splits]

    def close(self) -> None:
        if self._file is not None:
            self._file.close()
            self._file = None


class _LineByLineReader(LineReader):
    """Reads byte ranges of files in which every line is a row."""

    def __init__(self, rules: _Rules) -> None:
        super().__init__(rules.charset)
        self._rules = rules
        self._columns: _Columns | None = None

    def _opened(self, file: IO[bytes], split: dict[str, Any]) -> None:
        header = None
        if self._rules.header:
            file.seek(0)
            raw = file.readline()
            # The header is no record of the split that begins with it.
            split["position"] = max(split["position"], len(raw))
            file.seek(split["position"])
            try:
                text = raw.decode(self._charset).removeprefix(_BYTE_ORDER_MARK)
                [header] = self._rules.rows([text])
            except (csv.Error, ValueError) as error:
                raise bad_record(split["file"], "line 1", f"no header: {error}", raw) from error
        try:
            self._columns = _Columns(self._rules, header)
        except ValueError as error:
            raise bad_record(split["file"], "line 1", str(error), header) from error

    def poll(self, limit: int) -> list[Any] | None:
        while (lines := super().poll(limit)) is not None:
            # An empty list would say that there is nothing just now.
            if records := self._parsed(lines):
                return records
        return None

    def _parsed(self, lines: list[str]) -> list[Any]:
        assert self._columns is not None
        records: list[Any] = []
        for index, line in enumerate(lines):
            try:
                # A line by itself: what a quote leaves open must not swallow the lines after it.
                [row] = self._rules.rows([line])
                if row:
                    records.append(self._columns.record(row))
            except (csv.Error, ValueError) as error:
                place = self._place_of(self._next - len(lines) + index)
                raise bad_record(*place, f"a line is not CSV: {error}", line) from error
        return records
