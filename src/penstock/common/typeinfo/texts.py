"""Values of declared types as text, as PyFlink prints them.

>>> from penstock.common import Row
>>> from penstock.common.typeinfo import Types
>>> text_of(Types.TUPLE([Types.STRING(), Types.DOUBLE(), Types.BOOLEAN()]))(("hi", 1e10, True))
'(hi,1.0E10,true)'
>>> text_of(Types.ROW([Types.INT(), Types.STRING()]))(Row(1, "hi"))
'+I[1,hi]'

A row prints its fields as Python does; everything else, also a row inside something else, prints
as Java's `toString()` does. What was not declared prints as Python prints it.
"""

from __future__ import annotations

import datetime
import decimal
import math
import struct
from collections.abc import Callable
from typing import Any

from penstock.common.time import Instant
from penstock.common.typeinfo.base import TypeInformation
from penstock.common.typeinfo.basic import BasicTypeInfo
from penstock.common.typeinfo.containers import (
    BasicArrayTypeInfo,
    ListTypeInfo,
    MapTypeInfo,
    ObjectArrayTypeInfo,
    PrimitiveArrayTypeInfo,
)
from penstock.common.typeinfo.records import RowTypeInfo, TupleTypeInfo
from penstock.common.typeinfo.temporal import InstantTypeInfo, SqlTimeTypeInfo

ToText = Callable[[Any], str]

_LISTS = (ListTypeInfo, ObjectArrayTypeInfo, BasicArrayTypeInfo, PrimitiveArrayTypeInfo)


def text_of(kind: TypeInformation | None) -> ToText:
    """A function from a value of the type to its text."""
    return _row if isinstance(kind, RowTypeInfo) else _java(kind)


def _row(value: Any) -> str:
    return f"{value.get_row_kind()}[{','.join(map(str, value))}]"


def _java(kind: TypeInformation | None) -> ToText:
    if isinstance(kind, BasicTypeInfo):
        return _BASIC.get(kind.name, str)
    if isinstance(kind, SqlTimeTypeInfo):
        return _TEMPORAL[kind.kind]
    if isinstance(kind, InstantTypeInfo):
        return _instant
    if isinstance(kind, PrimitiveArrayTypeInfo) and kind.is_immutable():
        return str
    if isinstance(kind, _LISTS):
        return _listed(_or_null(_java(kind.element_type)))
    if isinstance(kind, MapTypeInfo):
        return _mapped(_or_null(_java(kind.key_type)), _or_null(_java(kind.value_type)))
    if isinstance(kind, TupleTypeInfo):
        return _fields(kind.field_types, lambda value: "(", ",", ")")
    if isinstance(kind, RowTypeInfo):
        return _fields(kind.field_types, lambda row: f"{row.get_row_kind()}[", ", ", "]")
    return str


def _or_null(text: ToText) -> ToText:
    return lambda value: "null" if value is None else text(value)


def _listed(text: ToText) -> ToText:
    return lambda values: f"[{', '.join(map(text, values))}]"


def _mapped(key: ToText, value: ToText) -> ToText:
    def text(entries: Any) -> str:
        shown = (f"{key(name)}={value(held)}" for name, held in entries.items())
        return f"{{{', '.join(shown)}}}"

    return text


def _fields(
    kinds: tuple[TypeInformation, ...], begin: Callable[[Any], str], between: str, end: str
) -> ToText:
    texts = [_or_null(_java(kind)) for kind in kinds]

    def text(values: Any) -> str:
        shown = between.join([show(value) for show, value in zip(texts, values, strict=True)])
        return f"{begin(values)}{shown}{end}"

    return text


def _boolean(value: Any) -> str:
    return "true" if value else "false"


def _double(value: float) -> str:
    return _number(value, repr(float(value)))


def _float(value: float) -> str:
    if not math.isfinite(value):
        return _number(value, "")
    # The fewest digits that tell it from other numbers of 32 bits.
    single = struct.pack("f", value)
    texts = (f"{value:.{digits}g}" for digits in range(1, 10))
    return _number(value, next(text for text in texts if struct.pack("f", float(text)) == single))


def _number(value: float, digits: str) -> str:
    """As Java writes a number of these digits: with an exponent from 10^7 on and below 0.001."""
    if not math.isfinite(value):
        return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"
    if value == 0 or 1e-3 <= abs(value) < 1e7:
        plain = f"{decimal.Decimal(digits):f}"
        return plain if "." in plain else f"{plain}.0"
    sign, figures, exponent = decimal.Decimal(digits).normalize().as_tuple()
    assert isinstance(exponent, int)
    first, *rest = map(str, figures)
    return f"{'-' * sign}{first}.{''.join(rest) or '0'}E{exponent + len(rest)}"


def _timestamp(value: datetime.datetime) -> str:
    fraction = f"{value.microsecond:06}".rstrip("0") or "0"
    return f"{value:%Y-%m-%d %H:%M:%S}.{fraction}"


def _time(value: datetime.time) -> str:
    return f"{value:%H:%M:%S}"


def _instant(value: Instant) -> str:
    day = datetime.datetime(1970, 1, 1) + datetime.timedelta(seconds=value.seconds)
    fraction = f"{value.nanos:09}"
    while fraction.endswith("000"):
        fraction = fraction[:-3]
    return f"{day:%Y-%m-%dT%H:%M:%S}{'.' if fraction else ''}{fraction}Z"


_BASIC: dict[str, ToText] = {"BOOLEAN": _boolean, "DOUBLE": _double, "FLOAT": _float}
_TEMPORAL: dict[str, ToText] = {"DATE": str, "TIME": _time, "TIMESTAMP": _timestamp}
