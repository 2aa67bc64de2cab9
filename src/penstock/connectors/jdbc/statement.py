"""A statement and its parameters: SQL with a question mark for each value of a row."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from penstock.errors import ProgramError, RecordError


def upsert(table: str, columns: Sequence[str], key: Sequence[str]) -> str:
    """Insert a row, or change the row that has its key; PostgreSQL and SQLite know it.

    Writing a row again changes nothing, so a sink that writes at least once ends in the right
    state.
    """
    unknown = [name for name in key if name not in columns]
    if not columns or not key or unknown:
        raise ProgramError(
            f"an upsert into {table} needs columns, and a key among them"
            + (f": {', '.join(unknown)} is none" if unknown else "")
        )
    rest = [name for name in columns if name not in key]
    changes = ", ".join(f"{quoted(name)} = excluded.{quoted(name)}" for name in rest)
    action = f"DO UPDATE SET {changes}" if rest else "DO NOTHING"
    names = ", ".join(quoted(name) for name in columns)
    marks = ", ".join("?" * len(columns))
    keys = ", ".join(quoted(name) for name in key)
    place = ".".join(quoted(part) for part in table.split("."))
    return f"INSERT INTO {place} ({names}) VALUES ({marks}) ON CONFLICT ({keys}) {action}"


def quoted(name: str) -> str:
    """A name as SQL writes it, whatever is in it."""
    escaped = name.replace('"', '""')
    return f'"{escaped}"'


@dataclass(frozen=True)
class Statement:
    """SQL, and how a record gives its parameters: in order, or by these names."""

    sql: str
    columns: tuple[str, ...] | None = None

    def parameters(self, record: Any) -> tuple[Any, ...]:
        """The parameters of one record."""
        if isinstance(record, Mapping):
            if self.columns is None:
                raise RecordError(
                    "a record is a dict and the statement has no column names; map it to a tuple"
                )
            missing = [name for name in self.columns if name not in record]
            if missing:
                raise RecordError(f"a record has no {', '.join(missing)}")
            return tuple(record[name] for name in self.columns)
        if isinstance(record, (str, bytes)) or not isinstance(record, Sequence):
            return self._counted((record,) if not hasattr(record, "__iter__") else tuple(record))
        return self._counted(tuple(record))

    def _counted(self, row: tuple[Any, ...]) -> tuple[Any, ...]:
        wanted = marks(self.sql)
        if len(row) != wanted:
            raise RecordError(f"a record has {len(row)} fields and the statement {wanted}")
        return row


def marks(sql: str) -> int:
    """How many parameters a statement has."""
    return len(_pieces(sql)) - 1


def with_marks(sql: str, mark: str) -> str:
    """The statement with another mark for parameters; what drivers call their paramstyle."""
    pieces = _pieces(sql)
    if mark == "%s":
        pieces = [piece.replace("%", "%%") for piece in pieces]
    return mark.join(pieces)


def _pieces(sql: str) -> list[str]:
    """The statement cut at its question marks, but not at those inside quotes."""
    pieces, quote, start = [], "", 0
    for index, character in enumerate(sql):
        if quote:
            quote = "" if character == quote else quote
        elif character in "'\"":
            quote = character
        elif character == "?":
            pieces.append(sql[start:index])
            start = index + 1
    return [*pieces, sql[start:]]
