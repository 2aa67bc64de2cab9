"""Declared types as the columns of DataFrames, and values there and back.

| declared | column |
|---|---|
| STRING, CHAR, SQL_TIME | string |
| BYTE, SHORT, INT, LONG | bigint: state keeps all digits whatever width was declared |
| FLOAT, DOUBLE | double |
| BOOLEAN, SQL_DATE | boolean, date |
| SQL_TIMESTAMP | timestamp_ntz |
| INSTANT | struct of seconds and nanos |
| BIG_INT, BIG_DEC | decimal(38, 0), decimal(38, 18) |
| PRIMITIVE_ARRAY of BYTE | binary |
| lists and arrays, MAP | array, map |
| TUPLE, ROW | struct: of f0, f1, ..., or of the names |
| anything else | struct of the pickled value and of what it looks like |
"""

from __future__ import annotations

import datetime
import decimal
import pickle
from collections.abc import Callable
from typing import Any

from pyspark.sql import types as spark

from penstock.common.time import Instant
from penstock.common.typeinfo import (
    BasicTypeInfo,
    InstantTypeInfo,
    MapTypeInfo,
    PrimitiveArrayTypeInfo,
    RowTypeInfo,
    SqlTimeTypeInfo,
    TupleTypeInfo,
    TypeInformation,
    Types,
)
from penstock.common.typeinfo.base import mismatch
from penstock.common.types import Row

Convert = Callable[[Any], Any]

_SHOWN = 1000
"""Of what an undeclared value looks like, so many characters."""
_WHOLE = ("BYTE", "SHORT", "INT", "LONG")
_BASIC: dict[str, spark.DataType] = {
    "STRING": spark.StringType(),
    "CHAR": spark.StringType(),
    "BOOLEAN": spark.BooleanType(),
    **dict.fromkeys(_WHOLE, spark.LongType()),
    **dict.fromkeys(("FLOAT", "DOUBLE"), spark.DoubleType()),
    "BIG_INT": spark.DecimalType(38, 0),
    "BIG_DEC": spark.DecimalType(38, 18),
}
_TIMES: dict[str, spark.DataType] = {
    "DATE": spark.DateType(),
    "TIME": spark.StringType(),
    "TIMESTAMP": spark.TimestampNTZType(),
}
_PICKLED = spark.StructType(
    [
        spark.StructField("pickled", spark.BinaryType()),
        spark.StructField("repr", spark.StringType()),
    ]
)
_INSTANT = spark.StructType(
    [
        spark.StructField("seconds", spark.LongType()),
        spark.StructField("nanos", spark.LongType()),
    ]
)


def column_type(kind: TypeInformation) -> spark.DataType:
    """The type of a column that holds values of `kind`."""
    if isinstance(kind, BasicTypeInfo):
        return _BASIC[kind.name]
    if isinstance(kind, SqlTimeTypeInfo):
        return _TIMES[kind.kind]
    if isinstance(kind, InstantTypeInfo):
        return _INSTANT
    if isinstance(kind, PrimitiveArrayTypeInfo) and kind.is_immutable():
        return spark.BinaryType()
    if isinstance(kind, MapTypeInfo):
        return spark.MapType(column_type(kind.key_type), column_type(kind.value_type))
    if isinstance(kind, (TupleTypeInfo, RowTypeInfo)):
        fields = zip(_names(kind), map(column_type, kind.field_types), strict=True)
        return spark.StructType([spark.StructField(name, field) for name, field in fields])
    element = getattr(kind, "element_type", None)
    return _PICKLED if element is None else spark.ArrayType(column_type(element))


def declared_type(column: spark.DataType) -> TypeInformation:
    """The type that values of a column have where nobody says: what `column_type` came from.

    A struct of f0, f1, ... is a TUPLE, any other is a ROW.
    """
    if column == _PICKLED:
        return Types.PICKLED_BYTE_ARRAY()
    if isinstance(column, spark.StructType):
        types = [declared_type(field.dataType) for field in column.fields]
        if column.names == [f"f{place}" for place in range(len(types))]:
            return Types.TUPLE(types)
        return Types.ROW_NAMED(column.names, types)
    if isinstance(column, spark.ArrayType):
        return Types.LIST(declared_type(column.elementType))
    if isinstance(column, spark.MapType):
        return Types.MAP(declared_type(column.keyType), declared_type(column.valueType))
    if isinstance(column, spark.DecimalType):
        return Types.BIG_INT() if column.scale == 0 else Types.BIG_DEC()
    for kind, make in _DECLARED:
        if isinstance(column, kind):
            return make()
    return Types.PICKLED_BYTE_ARRAY()


_DECLARED: list[tuple[type[spark.DataType], Callable[[], TypeInformation]]] = [
    (spark.StringType, Types.STRING),
    (spark.BooleanType, Types.BOOLEAN),
    (spark.IntegralType, Types.LONG),
    (spark.FractionalType, Types.DOUBLE),
    (spark.DateType, Types.SQL_DATE),
    (spark.TimestampNTZType, Types.SQL_TIMESTAMP),
    (spark.TimestampType, Types.SQL_TIMESTAMP),
    (spark.BinaryType, lambda: Types.PRIMITIVE_ARRAY(Types.BYTE())),
]


def _names(kind: TupleTypeInfo | RowTypeInfo) -> list[str]:
    if isinstance(kind, RowTypeInfo):
        return list(kind.field_names)
    return [f"f{place}" for place in range(len(kind.field_types))]


# --- into columns -----------------------------------------------------------------------------


def to_column(kind: TypeInformation) -> Convert:
    """A function that gives values of `kind`, or None, as Spark takes them for the column."""
    convert = _to(kind)
    return lambda value: None if value is None else convert(value)


def _to(kind: TypeInformation) -> Convert:
    if isinstance(kind, BasicTypeInfo):
        return _basic_to(kind)
    if isinstance(kind, SqlTimeTypeInfo):
        return _times_to(kind)
    if isinstance(kind, InstantTypeInfo):
        return lambda value: (kind.to_internal_type(value).seconds, value.nanos)
    if isinstance(kind, PrimitiveArrayTypeInfo) and kind.is_immutable():
        return lambda value: bytearray(kind.to_internal_type(value))
    if isinstance(kind, MapTypeInfo):
        key, item = to_column(kind.key_type), to_column(kind.value_type)
        return lambda value: {key(k): item(v) for k, v in value.items()}
    if isinstance(kind, (TupleTypeInfo, RowTypeInfo)):
        fields = [to_column(field) for field in kind.field_types]
        return lambda value: tuple(
            field(part) for field, part in zip(fields, _parts(kind, value), strict=True)
        )
    element = getattr(kind, "element_type", None)
    if element is None:
        return lambda value: (bytearray(pickle.dumps(value, protocol=5)), repr(value)[:_SHOWN])
    each = to_column(element)
    return lambda value: list(map(each, value))


def _parts(kind: TupleTypeInfo | RowTypeInfo, value: Any) -> list[Any]:
    if isinstance(value, Row) and isinstance(kind, RowTypeInfo):
        return value.get_fields_by_names(kind.field_names)
    if not isinstance(value, (tuple, list, Row)) or len(value) != len(kind.field_types):
        raise mismatch(kind, value)
    return list(value)


def _basic_to(kind: BasicTypeInfo) -> Convert:
    if kind.name in _WHOLE or kind.name == "BIG_INT":
        most = 1 << 63 if kind.name in _WHOLE else 10**38

        def whole(value: Any) -> Any:
            number = Types.BIG_INT().to_internal_type(value)
            if not -most <= number < most:
                raise mismatch(f"a number for a column of {kind}", value)
            return decimal.Decimal(number) if kind.name == "BIG_INT" else number

        return whole
    if kind.name in ("FLOAT", "DOUBLE"):
        return Types.DOUBLE().to_internal_type
    if kind.name == "BIG_DEC":
        return _decimal_to
    return kind.to_internal_type


def _decimal_to(value: Any) -> decimal.Decimal:
    with decimal.localcontext(decimal.Context(prec=38)) as exactly:
        exactly.traps[decimal.Inexact] = True
        exactly.traps[decimal.InvalidOperation] = True
        try:
            return decimal.Decimal(value).quantize(decimal.Decimal(1).scaleb(-18))
        except decimal.DecimalException:
            raise mismatch("a decimal with up to 20 and 18 digits", value) from None


def _times_to(kind: SqlTimeTypeInfo) -> Convert:
    if kind.kind == "TIME":
        return lambda value: str(value.isoformat())

    def moment(value: Any) -> Any:
        if kind.kind == "DATE":
            return kind.to_internal_type(value)
        if not isinstance(value, datetime.datetime) or value.tzinfo is not None:
            raise mismatch("a datetime without a zone", value)
        return value

    return moment


# --- out of columns ---------------------------------------------------------------------------


def from_column(kind: TypeInformation) -> Convert:
    """A function that gives what Spark has in a column as values of `kind`; None stays None."""
    convert = _from(kind)
    return lambda value: None if value is None else convert(value)


def _from(kind: TypeInformation) -> Convert:
    if isinstance(kind, BasicTypeInfo):
        return _basic_from(kind)
    if isinstance(kind, SqlTimeTypeInfo) and kind.kind == "TIME":
        return lambda value: datetime.time.fromisoformat(value) if isinstance(value, str) else value
    if isinstance(kind, InstantTypeInfo):
        return lambda value: value if isinstance(value, Instant) else Instant(*value)
    if isinstance(kind, PrimitiveArrayTypeInfo) and kind.is_immutable():
        return kind.to_internal_type
    if isinstance(kind, MapTypeInfo):
        key, item = from_column(kind.key_type), from_column(kind.value_type)
        return lambda value: {key(k): item(v) for k, v in _mapping(kind, value).items()}
    if isinstance(kind, TupleTypeInfo):
        fields = [from_column(field) for field in kind.field_types]
        return lambda value: tuple(
            field(part) for field, part in zip(fields, _parts(kind, value), strict=True)
        )
    if isinstance(kind, RowTypeInfo):
        return _row_from(kind)
    element = getattr(kind, "element_type", None)
    if element is None:
        return _undeclared_from
    each = from_column(element)
    return lambda value: list(map(each, _listed(kind, value)))


def _basic_from(kind: BasicTypeInfo) -> Convert:
    if kind.name not in ("BIG_INT", *_WHOLE):
        return kind.to_internal_type

    def whole(value: Any) -> int:
        if isinstance(value, decimal.Decimal) and value == value.to_integral_value():
            return int(value)
        number: int = Types.BIG_INT().to_internal_type(value)
        return number

    return whole


def _mapping(kind: TypeInformation, value: Any) -> dict[Any, Any]:
    if isinstance(value, dict):
        return value
    raise mismatch(kind, value)


def _listed(kind: TypeInformation, value: Any) -> list[Any]:
    # A struct is a tuple to Python, and no list.
    if isinstance(value, list):
        return value
    raise mismatch(kind, value)


def _row_from(kind: RowTypeInfo) -> Convert:
    names = list(kind.field_names)
    fields = [from_column(field) for field in kind.field_types]

    def row(value: Any) -> Row:
        if not isinstance(value, tuple):
            raise mismatch(kind, value)
        there = getattr(value, "__fields__", names)
        missing = [name for name in names if name not in there]
        if missing:
            raise mismatch(kind, tuple(value), f" without a field {missing[0]!r}")
        parts = [value[there.index(name)] for name in names]
        made = Row(*(field(part) for field, part in zip(fields, parts, strict=True)))
        made.set_field_names(names)
        return made

    return row


def _undeclared_from(value: Any) -> Any:
    """What was pickled; of any other column the plain value."""
    if getattr(value, "__fields__", None) == _PICKLED.names:
        return pickle.loads(bytes(value[0]))
    if isinstance(value, bytearray):
        return bytes(value)
    return tuple(value) if isinstance(value, tuple) else value
