"""From the type that values were saved with to the one that is declared now.

Fields of rows may come, go and change places; numbers may become wider; at any depth. A field that
came has the default that its row type gives, else None. Everything else is another type, and what
was saved cannot be it.

>>> from penstock.common.typeinfo import Types
>>> saved = Types.ROW_NAMED(["name", "n"], [Types.STRING(), Types.INT()])
>>> declared = Types.ROW_NAMED(["n", "unit"], [Types.LONG(), Types.STRING()], {"unit": "kg"})
>>> migration(saved, declared)(Row(name="a", n=1))
Row(n=1, unit='kg')
>>> migration(Types.LONG(), Types.STRING())
Traceback (most recent call last):
    ...
penstock.state.migration.NoMigration: LONG cannot become STRING
"""

from __future__ import annotations

import copy
import decimal
from collections.abc import Callable
from typing import Any

from penstock.common.typeinfo import (
    BasicArrayTypeInfo,
    BasicTypeInfo,
    ListTypeInfo,
    MapTypeInfo,
    ObjectArrayTypeInfo,
    PrimitiveArrayTypeInfo,
    RowTypeInfo,
    TupleTypeInfo,
    TypeInformation,
)
from penstock.common.typeinfo.base import shorten
from penstock.common.types import Row, RowKind
from penstock.errors import IncompatibleStateError, StateError
from penstock.state.kinds import ATOMIC
from penstock.state.schema import PICKLED, schema_of
from penstock.state.table import StateTable

Migrate = Callable[[Any], Any]
"""Gives a saved value as the declared type has it."""

_WIDER = {
    "BYTE": {"SHORT", "INT", "LONG", "BIG_INT", "FLOAT", "DOUBLE", "BIG_DEC"},
    "SHORT": {"INT", "LONG", "BIG_INT", "FLOAT", "DOUBLE", "BIG_DEC"},
    "INT": {"LONG", "BIG_INT", "DOUBLE", "BIG_DEC"},
    "LONG": {"BIG_INT", "BIG_DEC"},
    "BIG_INT": {"BIG_DEC"},
    "FLOAT": {"DOUBLE"},
    "CHAR": {"STRING"},
}
"""What holds every value of a type: a LONG is no DOUBLE, which has fewer digits."""


class NoMigration(Exception):
    """Values of one type cannot become values of the other; the text says where."""


def migration(saved: TypeInformation, declared: TypeInformation) -> Migrate | None:
    """What makes saved values declared ones; None if they stay as they are; else NoMigration.

    What nobody declared, then or now, may be anything: it stays as it is.
    """
    if saved == declared or _undeclared(saved) or _undeclared(declared):
        return None
    if isinstance(saved, BasicTypeInfo) and isinstance(declared, BasicTypeInfo):
        return _number(saved, declared)
    if type(saved) is type(declared) and type(saved) in _RULES:
        return _RULES[type(saved)](saved, declared)
    raise NoMigration(f"{saved} cannot become {declared}")


def migration_of_state(
    name: str, saved: TypeInformation, declared: TypeInformation
) -> Migrate | None:
    """The same for a state; IncompatibleStateError names both types and what to do."""
    try:
        return migration(saved, declared)
    except NoMigration as reason:
        raise IncompatibleStateError(
            f"state {name!r} was saved with the type {saved} and is now declared with {declared}: "
            f"{reason}; give it a new name or declare it as it was"
        ) from None


def migrate_table(table: StateTable, migrate: Migrate) -> None:
    """Replace every value; all of them count as changed, so that the next delta holds them."""
    entries, changed = table.entries, table.changes.current
    for key, value in entries.items():
        entries[key] = migrate(value)
        changed.add(key)


def _undeclared(kind: TypeInformation) -> bool:
    return schema_of(kind) == schema_of(PICKLED)


def _number(saved: BasicTypeInfo, declared: BasicTypeInfo) -> Migrate | None:
    if declared.name not in _WIDER.get(saved.name, ()):
        raise NoMigration(f"{saved} cannot become {declared}")
    if declared.name == "BIG_DEC":
        return decimal.Decimal
    if declared.name in ("FLOAT", "DOUBLE") and saved.name != "FLOAT":
        return _real
    return None


def _real(number: int) -> float:
    # State keeps all digits of a number whatever width was declared, so it may be a larger one.
    if abs(number) > 1 << 53:
        raise StateError(f"{shorten(number)} was saved and is too large for a float")
    return float(number)


def _inside(step: str, saved: TypeInformation, declared: TypeInformation) -> Migrate | None:
    try:
        migrate = migration(saved, declared)
    except NoMigration as reason:
        raise NoMigration(f"{step}: {reason}") from None
    return None if migrate is None else _nullable(migrate)


def _nullable(migrate: Migrate) -> Migrate:
    return lambda value: None if value is None else migrate(value)


def _list(saved: Any, declared: Any) -> Migrate | None:
    if saved.is_immutable() != declared.is_immutable():
        # Of BYTE it is a bytes object, of anything else a list.
        raise NoMigration(f"{saved} cannot become {declared}")
    each = _inside("an element", saved.element_type, declared.element_type)
    return None if each is None else lambda values: list(map(each, values))


def _map(saved: MapTypeInfo, declared: MapTypeInfo) -> Migrate | None:
    if saved.key_type != declared.key_type and _has_rows(saved.key_type):
        # Two keys could become one.
        raise NoMigration(f"keys: {saved.key_type} cannot become {declared.key_type}")
    key = _inside("keys", saved.key_type, declared.key_type)
    value = _inside("values", saved.value_type, declared.value_type)
    if key is None and value is None:
        return None
    to_key, to_value = key or _same, value or _same
    return lambda entries: {to_key(k): to_value(v) for k, v in entries.items()}


def _same(value: Any) -> Any:
    return value


def _has_rows(kind: TypeInformation) -> bool:
    return isinstance(kind, RowTypeInfo) or any(
        map(_has_rows, getattr(kind, "field_types", ()) or _elements(kind))
    )


def _elements(kind: TypeInformation) -> tuple[TypeInformation, ...]:
    element = getattr(kind, "element_type", None)
    return () if element is None else (element,)


def _tuple(saved: TupleTypeInfo, declared: TupleTypeInfo) -> Migrate | None:
    if len(saved.field_types) != len(declared.field_types):
        # Without names nobody can tell which one came or went.
        raise NoMigration(f"{saved} cannot become {declared}: a tuple keeps its width")
    pairs = zip(saved.field_types, declared.field_types, strict=True)
    fields = [_inside(f"field {place}", *pair) for place, pair in enumerate(pairs)]
    if not any(fields):
        return None
    steps = [migrate or _same for migrate in fields]
    return lambda values: tuple(step(v) for step, v in zip(steps, values, strict=True))


def _row(saved: RowTypeInfo, declared: RowTypeInfo) -> Migrate | None:
    names = list(declared.field_names)
    if saved.field_names and not set(names) & set(saved.field_names):
        raise NoMigration(f"{saved} cannot become {declared}: they have no field in common")
    fields = [_field(name, saved, declared) for name in names]
    if saved.field_names == declared.field_names and not any(m for _, m, _ in fields):
        return None

    def migrate(row: Row) -> Row:
        values = list(row)
        made = Row(
            *(
                _fresh(default) if place is None else (step or _same)(values[place])
                for place, step, default in fields
            )
        )
        made.set_field_names(names)
        if row.get_row_kind() is not RowKind.INSERT:
            made.set_row_kind(row.get_row_kind())
        return made

    return migrate


def _field(
    name: str, saved: RowTypeInfo, declared: RowTypeInfo
) -> tuple[int | None, Migrate | None, Any]:
    """Where the field was, what becomes of its values, and its default if it was nowhere."""
    place = saved.get_field_index(name)
    if place < 0:
        return None, None, declared.defaults.get(name)
    kind = declared.field_types[declared.get_field_index(name)]
    return place, _inside(f"field {name!r}", saved.field_types[place], kind), None


def _fresh(default: Any) -> Any:
    return default if default.__class__ in ATOMIC else copy.deepcopy(default)


_RULES: dict[type, Callable[[Any, Any], Migrate | None]] = {
    ListTypeInfo: _list,
    ObjectArrayTypeInfo: _list,
    BasicArrayTypeInfo: _list,
    PrimitiveArrayTypeInfo: _list,
    MapTypeInfo: _map,
    TupleTypeInfo: _tuple,
    RowTypeInfo: _row,
}
