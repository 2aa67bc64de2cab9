"""Row and RowKind: records whose fields have names or positions.

>>> Row(name="Ada", born=1815)
Row(name='Ada', born=1815)
>>> Person = Row("name", "born")
>>> ada = Person("Ada", 1815)
>>> ada["name"], ada.born, ada[0], list(ada)
('Ada', 1815, 'Ada', ['Ada', 1815])
>>> ada.as_dict()
{'name': 'Ada', 'born': 1815}
"""

from __future__ import annotations

import enum
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from penstock import kept
from penstock.common.java_only import java_only

__all__ = ["Row", "RowKind"]


@kept.named("RowKind", lambda kind: (kind.value,))
class RowKind(enum.Enum):
    """What a row says about a table: a row came, changed (from, to), or went."""

    INSERT = 0
    UPDATE_BEFORE = 1
    UPDATE_AFTER = 2
    DELETE = 3

    def __str__(self) -> str:
        return ("+I", "-U", "+U", "-D")[self.value]

    to_j_row_kind = java_only("to_j_row_kind", "use the RowKind itself")


class Row:
    """A record of positional or of named fields, with a RowKind.

    Positional values may serve as names: `Row("a", "b")(1, 2)` is `Row(a=1, b=2)`. Two rows are
    equal if their names, values and kinds are. A row can be a key if all its fields can.
    """

    __slots__ = ("_fields", "_row_kind", "_values")

    _fields: list[Any] | None
    _values: list[Any]
    _row_kind: RowKind

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        if args and kwargs:
            raise ValueError("a Row has positional or named fields, not both")
        _fill(self, list(kwargs) if kwargs else None, [*args, *kwargs.values()], RowKind.INSERT)

    @staticmethod
    def of_kind(row_kind: RowKind, *args: Any, **kwargs: Any) -> Row:
        """A row of this kind."""
        row = Row(*args, **kwargs)
        row.set_row_kind(row_kind)
        return row

    def as_dict(self, recursive: bool = False) -> dict[Any, Any]:
        """Values by name; with `recursive` rows inside, also in lists and dicts, become dicts."""
        if self._fields is None:
            raise TypeError("a Row without field names has no dict")
        values = map(_deep, self._values) if recursive else self._values
        return dict(zip(self._fields, values, strict=False))

    def get_row_kind(self) -> RowKind:
        """The kind; INSERT unless it was set."""
        return self._row_kind

    def set_row_kind(self, row_kind: RowKind) -> None:
        """Make this a row of another kind."""
        object.__setattr__(self, "_row_kind", row_kind)

    def set_field_names(self, field_names: Iterable[Any]) -> None:
        """Name the fields, in order."""
        object.__setattr__(self, "_fields", list(field_names))

    def get_fields_by_names(self, names: Sequence[Any]) -> list[Any]:
        """The values in the order of `names`; all of them, in order, if the fields have no names.

        ValueError if the row has names and one is not among them.
        """
        if self._fields is None or self._fields == list(names):
            return list(self._values)
        missing = [name for name in names if name not in self._fields]
        if missing:
            raise ValueError(f"no field {missing[0]!r} among {', '.join(map(str, self._fields))}")
        return [self._values[self._fields.index(name)] for name in names]

    def __call__(self, *args: Any) -> Row:
        """A row of these values; the values of this one are its names."""
        if len(args) > len(self._values):
            raise ValueError(f"{len(args)} values for the {len(self._values)} fields of {self!r}")
        return _row(self._values, list(args), self._row_kind)

    def __getitem__(self, item: Any) -> Any:
        return self._values[item if isinstance(item, (int, slice)) else self._index(item)]

    def __setitem__(self, key: Any, value: Any) -> None:
        self._values[key if isinstance(key, (int, slice)) else self._index(key)] = value

    def _index(self, name: Any) -> int:
        if self._fields is None or name not in self._fields:
            raise KeyError(name)
        return self._fields.index(name)

    def __getattr__(self, item: str) -> Any:
        # Names with an underscore are asked for by pickle and copy, before there are any fields.
        if not item.startswith("_") and self._fields is not None and item in self._fields:
            return self._values[self._fields.index(item)]
        raise AttributeError(f"{type(self).__name__} has no field {item!r}")

    def __setattr__(self, key: str, value: Any) -> None:
        raise AttributeError(f"to set a field write row[{key!r}] = ...")

    def __contains__(self, item: Any) -> bool:
        return item in self._values

    def __iter__(self) -> Iterator[Any]:
        return iter(self._values)

    def __len__(self) -> int:
        return len(self._values)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Row):
            return NotImplemented
        mine = (self._fields, self._row_kind, self._values)
        return mine == (other._fields, other._row_kind, other._values)

    def __hash__(self) -> int:
        return hash(tuple(self._values))

    def __reduce__(self) -> tuple[Any, ...]:
        # A list of its own: a shallow copy must not share its values with the original.
        return kept.Row, (self._fields, list(self._values), self._row_kind)

    def __repr__(self) -> str:
        if self._fields is None:
            return f"<Row({', '.join(map(repr, self._values))})>"
        pairs = zip(self._fields, self._values, strict=False)
        return f"Row({', '.join(f'{name}={value!r}' for name, value in pairs)})"


@kept.named("Row")
def _row(fields: Iterable[Any] | None, values: list[Any], kind: RowKind) -> Row:
    """A row that owns `values`."""
    row = Row.__new__(Row)
    _fill(row, None if fields is None else list(fields), values, kind)
    return row


def _fill(row: Row, fields: list[Any] | None, values: list[Any], kind: RowKind) -> None:
    # Past the row's own `__setattr__`, which keeps users from setting what is not a field.
    object.__setattr__(row, "_fields", fields)
    object.__setattr__(row, "_values", values)
    object.__setattr__(row, "_row_kind", kind)


def _deep(value: Any) -> Any:
    if isinstance(value, Row):
        return value.as_dict(True)
    if isinstance(value, list):
        return [_deep(item) for item in value]
    if isinstance(value, dict):
        return {key: _deep(item) for key, item in value.items()}
    return value
