"""Whether a value fits the type that was declared for its state, at next to no cost.

What fits is what a checkpoint can write without loss (`columns`). Asking that takes microseconds,
so nearly all values are let through by their classes: a test of a few comparisons, made from the
declared type. Of a list, a map or an array only the class is looked at: what is in it is found
when the next checkpoint writes it.

>>> from penstock.common.typeinfo import Types
>>> quick_test(Types.TUPLE([Types.STRING(), Types.LONG()]))
'v.__class__ is tuple and len(v) == 2 and v[0].__class__ is str and v[1].__class__ is int'
"""

from __future__ import annotations

import datetime
import decimal
from collections.abc import Callable
from typing import Any

from penstock.common.time import Instant
from penstock.common.typeinfo import (
    BasicTypeInfo,
    InstantTypeInfo,
    ListTypeInfo,
    MapTypeInfo,
    PrimitiveArrayTypeInfo,
    RowTypeInfo,
    SqlTimeTypeInfo,
    TupleTypeInfo,
    TypeInformation,
)
from penstock.common.types import Row
from penstock.errors import TypeMismatchError
from penstock.state.columns import encode_column

_BASIC: dict[str, type] = {
    **dict.fromkeys(("BYTE", "SHORT", "INT", "LONG", "BIG_INT"), int),
    **dict.fromkeys(("FLOAT", "DOUBLE"), float),
    "STRING": str,
    "BOOLEAN": bool,
    "BIG_DEC": decimal.Decimal,
}
_TEMPORAL: dict[str, type] = {
    "DATE": datetime.date,
    "TIME": datetime.time,
    "TIMESTAMP": datetime.datetime,
}
NAMES: dict[str, Any] = {
    kind.__name__: kind for kind in (*_BASIC.values(), *_TEMPORAL.values(), Instant, Row)
}
"""What a `quick_test` refers to."""


def plain_class(kind: TypeInformation) -> type | None:
    """The class all of whose values fit; None if there is none."""
    if isinstance(kind, BasicTypeInfo):
        return _BASIC.get(kind.name)
    if isinstance(kind, SqlTimeTypeInfo):
        return _TEMPORAL[kind.kind]
    if isinstance(kind, InstantTypeInfo):
        return Instant
    if isinstance(kind, PrimitiveArrayTypeInfo) and kind.is_immutable():
        return bytes
    return None


def quick_test(kind: TypeInformation, value: str = "v") -> str:
    """An expression that is true of most values that fit, and of few that do not."""
    plain = plain_class(kind)
    if plain is not None:
        return f"{value}.__class__ is {plain.__name__}"
    if isinstance(kind, TupleTypeInfo):
        width = len(kind.field_types)
        tests = [quick_test(each, f"{value}[{n}]") for n, each in enumerate(kind.field_types)]
        return " and ".join([f"{value}.__class__ is tuple", f"len({value}) == {width}", *tests])
    if isinstance(kind, RowTypeInfo):
        held, width = f"{value}._values", len(kind.field_types)
        fields = [(each, f"{held}[{n}]") for n, each in enumerate(kind.field_types)]
        tests = [f"({field} is None or {quick_test(each, field)})" for each, field in fields]
        return " and ".join([f"{value}.__class__ is Row", f"len({held}) == {width}", *tests])
    if isinstance(kind, MapTypeInfo):
        return f"{value}.__class__ is dict"
    if isinstance(kind, ListTypeInfo):
        return f"{value}.__class__ is list"
    return "False"


Check = Callable[[Any], Any]
"""Gives back the value that it is given; TypeMismatchError if it does not fit."""


def judge(kind: TypeInformation, state: str, part: str = "") -> Check:
    """The check itself, slow and exact; the error names `state`, and which `part` of it."""

    def check(value: Any) -> Any:
        try:
            encode_column(kind, [value])
        except TypeMismatchError as error:
            place = f"state {state!r}: {part}"
            raise TypeMismatchError(f"{place}{error.message}", error.path, error.shown) from None
        except Exception:
            # What cannot be pickled is found, with its key, by the checkpoint that writes it.
            return value
        return value

    return check


def checker(kind: TypeInformation, state: str, part: str = "") -> Check | None:
    """A quick check with an exact one behind it; None if every value fits."""
    if kind.converter() is None:
        return None
    names = {**NAMES, "judge": judge(kind, state, part)}
    check: Check = eval(f"lambda v: v if {quick_test(kind)} else judge(v)", names)
    return check
