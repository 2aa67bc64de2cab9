"""Schemas: a declared type as plain data, for the index of a segment.

Whoever reads a segment, with another version of the program or none at all, learns from it which
states there are, of which kind and type, and whether reading them needs pickle.

>>> from penstock.common.typeinfo import Types
>>> schema_of(Types.LIST(Types.LONG()))
{'type': 'LIST', 'of': [{'type': 'LONG'}]}
>>> type_of(schema_of(Types.LIST(Types.LONG())))
LIST(LONG)
"""

from __future__ import annotations

from typing import Any

from penstock.common.typeinfo import (
    BasicArrayTypeInfo,
    BasicTypeInfo,
    InstantTypeInfo,
    ListTypeInfo,
    MapTypeInfo,
    ObjectArrayTypeInfo,
    PickledBytesTypeInfo,
    PrimitiveArrayTypeInfo,
    RowTypeInfo,
    SqlTimeTypeInfo,
    TupleTypeInfo,
    TypeInformation,
)

Schema = dict[str, Any]

PICKLED: TypeInformation = PickledBytesTypeInfo()
"""The type of what nobody declared."""

_LISTS: dict[str, type[Any]] = {
    "LIST": ListTypeInfo,
    "OBJECT_ARRAY": ObjectArrayTypeInfo,
    "BASIC_ARRAY": BasicArrayTypeInfo,
    "PRIMITIVE_ARRAY": PrimitiveArrayTypeInfo,
}
_LIST_TYPES = tuple(_LISTS.values())


def schema_of(kind: TypeInformation) -> Schema:
    """The type as JSON has it. A type that Penstock does not know is pickled."""
    if isinstance(kind, BasicTypeInfo):
        return {"type": kind.name}
    if isinstance(kind, SqlTimeTypeInfo):
        return {"type": f"SQL_{kind.kind}"}
    if isinstance(kind, InstantTypeInfo):
        return {"type": "INSTANT"}
    if isinstance(kind, _LIST_TYPES):
        return {"type": kind.name, "of": [schema_of(kind.element_type)]}
    if isinstance(kind, MapTypeInfo):
        return {"type": "MAP", "of": [schema_of(kind.key_type), schema_of(kind.value_type)]}
    if isinstance(kind, TupleTypeInfo):
        return {"type": "TUPLE", "of": [schema_of(field) for field in kind.field_types]}
    if isinstance(kind, RowTypeInfo):
        fields = [schema_of(field) for field in kind.field_types]
        return {"type": "ROW", "names": list(kind.field_names), "of": fields}
    return {"type": "PICKLED_BYTE_ARRAY"}


def type_of(schema: Schema) -> TypeInformation:
    """The type that a schema describes."""
    name = schema["type"]
    parts = [type_of(part) for part in schema.get("of", ())]
    if name == "PICKLED_BYTE_ARRAY":
        return PICKLED
    if name == "INSTANT":
        return InstantTypeInfo()
    if name.startswith("SQL_"):
        return SqlTimeTypeInfo(name.removeprefix("SQL_"))
    if name in _LISTS:
        return _LISTS[name](*parts)  # type: ignore[no-any-return]
    if name == "MAP":
        return MapTypeInfo(*parts)
    if name == "TUPLE":
        return TupleTypeInfo(parts)
    if name == "ROW":
        return RowTypeInfo(parts, schema["names"])
    return BasicTypeInfo(name)


def needs_pickle(schema: Schema) -> bool:
    """Whether anything of the type is pickled."""
    if schema["type"] == "PICKLED_BYTE_ARRAY":
        return True
    return any(needs_pickle(part) for part in schema.get("of", ()))
