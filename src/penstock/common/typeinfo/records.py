"""Tuples and rows: a fixed number of fields, each of its own type.

>>> from penstock.common.typeinfo import Types
>>> pair = Types.TUPLE([Types.STRING(), Types.INT()])
>>> pair.to_internal_type(["a", True])
('a', 1)
>>> person = Types.ROW_NAMED(["name", "born"], [Types.STRING(), Types.INT()])
>>> person.to_internal_type({"name": "Ada"})
Row(name='Ada', born=None)
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from penstock.common.typeinfo.base import Converter, TypeInformation, blame, mismatch
from penstock.common.types import Row, RowKind
from penstock.errors import ProgramError, TypeMismatchError


@dataclass(frozen=True, repr=False)
class TupleTypeInfo(TypeInformation[tuple[Any, ...]]):
    """A tuple. No field may be None; a row's may."""

    field_types: tuple[TypeInformation, ...]

    def __init__(self, field_types: Sequence[TypeInformation]) -> None:
        object.__setattr__(self, "field_types", tuple(field_types))

    def get_field_types(self) -> list[TypeInformation]:
        """The types of the fields, in order."""
        return list(self.field_types)

    def converter(self) -> Converter | None:
        name, width = str(self), len(self.field_types)
        fields = [kind.converter() for kind in self.field_types]
        steps = [f"[{index}]" for index in range(width)]

        def convert(value: Any) -> tuple[Any, ...]:
            if not isinstance(value, (tuple, list, Row)):
                raise mismatch(name, value)
            if len(value) != width:
                raise _width_mismatch(name, width, value)
            return tuple(_convert_fields(fields, list(value), steps, nullable=False))

        return convert

    def is_immutable(self) -> bool:
        return all(kind.is_immutable() for kind in self.field_types)

    def __str__(self) -> str:
        return f"TUPLE({', '.join(map(str, self.field_types))})"


@dataclass(frozen=True, repr=False)
class RowTypeInfo(TypeInformation[Row]):
    """A Row with named fields (`f0`, `f1`, ... if no names are given). Fields may be None.

    A row is taken by its names if it has any; tuples and lists are taken by position; of dicts and
    of other objects the keys or attributes of these names are taken, and what is absent is None.
    """

    field_types: tuple[TypeInformation, ...]
    field_names: tuple[str, ...]
    defaults: Mapping[str, Any] = field(compare=False)
    """What rows that were saved before a field was added have in it, by the field's name.

    It is no part of the type: rows are alike wherever their values came from.
    """

    def __init__(
        self,
        field_types: Sequence[TypeInformation],
        field_names: Sequence[str] | None = None,
        defaults: Mapping[str, Any] | None = None,
    ) -> None:
        names = field_names
        if names is None:
            names = [f"f{index}" for index in range(len(field_types))]
        if len(names) != len(field_types) or len(set(names)) != len(names):
            raise ProgramError(
                f"a row of {len(field_types)} types needs as many different names, "
                f"not {', '.join(names) or 'none'}"
            )
        object.__setattr__(self, "field_types", tuple(field_types))
        object.__setattr__(self, "field_names", tuple(names))
        object.__setattr__(self, "defaults", self._checked(defaults or {}))

    def _checked(self, defaults: Mapping[str, Any]) -> dict[str, Any]:
        """The defaults as their types have them."""
        checked = {}
        for name, default in defaults.items():
            index = self.get_field_index(name)
            if index < 0:
                raise ProgramError(f"a default for {name!r}, which is no field of {self}")
            try:
                kind = self.field_types[index]
                checked[name] = None if default is None else kind.to_internal_type(default)
            except TypeMismatchError as error:
                raise ProgramError(
                    f"the default of a field does not fit: {name}: {error}"
                ) from None
        return checked

    def get_field_names(self) -> list[str]:
        """The names of the fields, in order."""
        return list(self.field_names)

    def get_field_types(self) -> list[TypeInformation]:
        """The types of the fields, in order."""
        return list(self.field_types)

    def get_field_index(self, field_name: str) -> int:
        """The position of a field; -1 if there is none of this name."""
        return self.field_names.index(field_name) if field_name in self.field_names else -1

    def converter(self) -> Converter | None:
        name, width, names = str(self), len(self.field_types), list(self.field_names)
        fields = [kind.converter() for kind in self.field_types]

        def convert(value: Any) -> Row:
            values = _values_of(name, names, value)
            if len(values) != width:
                raise _width_mismatch(name, width, value)
            row = Row(*_convert_fields(fields, values, names, nullable=True))
            row.set_field_names(names)
            if isinstance(value, Row) and value.get_row_kind() is not RowKind.INSERT:
                row.set_row_kind(value.get_row_kind())
            return row

        return convert

    def is_immutable(self) -> bool:
        return False

    def __str__(self) -> str:
        pairs = zip(self.field_names, self.field_types, strict=True)
        return f"ROW({', '.join(f'{name}: {kind}' for name, kind in pairs)})"


def _values_of(name: str, names: list[str], value: Any) -> Sequence[Any]:
    if isinstance(value, Row):
        try:
            return value.get_fields_by_names(names)
        except ValueError as error:
            raise mismatch(name, value, f" with {error}") from None
    if isinstance(value, (tuple, list)):
        return value
    empty = isinstance(value, dict) and not value
    source = value if isinstance(value, dict) else getattr(value, "__dict__", {})
    # What is there and has nothing in common with the type is a mistake, not a row of Nones.
    if not empty and not any(field in source for field in names):
        raise mismatch(name, value)
    return [source.get(field) for field in names]


def _convert_fields(
    converters: list[Converter | None],
    values: Sequence[Any],
    steps: list[str],
    *,
    nullable: bool,
) -> list[Any]:
    try:
        return [
            value if convert is None or (nullable and value is None) else convert(value)
            for convert, value in zip(converters, values, strict=True)
        ]
    except TypeMismatchError:
        raise blame(converters, values, steps, nullable=nullable) from None


def _width_mismatch(name: str, width: int, value: Any) -> TypeMismatchError:
    fields = "field" if width == 1 else "fields"
    return mismatch(f"{name} with {width} {fields}", value, f" with {len(value)}")
