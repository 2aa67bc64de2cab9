"""Numbers, strings, and objects of any kind.

A whole number that is too large for its type is an error; FLOAT rounds to 32 bits:

>>> from penstock.common.typeinfo import Types
>>> Types.SHORT().to_internal_type(40_000)
Traceback (most recent call last):
    ...
penstock.errors.TypeMismatchError: expected SHORT, got int, which does not fit into 16 bits: 40000
>>> Types.FLOAT().to_internal_type(0.1)
0.10000000149011612
>>> Types.LONG().to_internal_type("7")
Traceback (most recent call last):
    ...
penstock.errors.TypeMismatchError: expected LONG, got str: '7'
"""

from __future__ import annotations

import ctypes
import decimal
import operator
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from penstock.common.type_variables import T_co
from penstock.common.typeinfo.base import Converter, TypeInformation, mismatch


@dataclass(frozen=True, repr=False)
class BasicTypeInfo(TypeInformation[T_co]):
    """A single value that cannot be taken apart: a number, a string, a boolean."""

    name: str

    def converter(self) -> Converter | None:
        return _CONVERTERS[self.name]

    def is_immutable(self) -> bool:
        return True

    def __str__(self) -> str:
        return self.name


@dataclass(frozen=True, repr=False)
class PickledBytesTypeInfo(TypeInformation[Any]):
    """Any object that can be pickled."""

    def converter(self) -> Converter | None:
        return None

    def is_immutable(self) -> bool:
        return False

    def __str__(self) -> str:
        return "PICKLED_BYTE_ARRAY"


def _bounded(name: str, bits: int) -> Converter:
    """Whole numbers of so many bits."""
    low, high = -(1 << (bits - 1)), (1 << (bits - 1)) - 1

    def convert(value: Any) -> int:
        number: int = value if value.__class__ is int else _whole(name, value)
        if low <= number <= high:
            return number
        raise mismatch(name, number, f", which does not fit into {bits} bits")

    return convert


def _whole(name: str, value: Any) -> int:
    """A bool, or another library's whole number, as an int; a float is never cut off."""
    try:
        return operator.index(value)
    except TypeError:
        raise mismatch(name, value) from None


def _big_int(value: Any) -> int:
    return value if value.__class__ is int else _whole("BIG_INT", value)


def _real(name: str) -> Callable[[Any], float]:
    def convert(value: Any) -> float:
        if value.__class__ is float:
            return value
        # Not simply float(value): that would read a str.
        if not hasattr(value, "__float__") and not hasattr(value, "__index__"):
            raise mismatch(name, value)
        try:
            return float(value)
        except (OverflowError, TypeError, ValueError):
            raise mismatch(name, value) from None

    return convert


_double = _real("DOUBLE")
_wide = _real("FLOAT")


def _float(value: Any) -> float:
    return ctypes.c_float(_wide(value)).value


def _boolean(value: Any) -> bool:
    return value if value.__class__ is bool else _whole("BOOLEAN", value) != 0


def _string(value: Any) -> str:
    if value.__class__ is str:
        return value
    if isinstance(value, str):
        # The plain string of a subclass, whatever its own `__str__` says.
        return str.__str__(value)
    raise mismatch("STRING", value)


def _char(value: Any) -> str:
    if isinstance(value, str) and len(value) == 1:
        return str.__str__(value)
    raise mismatch("CHAR (a str of length 1)", value)


def _big_dec(value: Any) -> decimal.Decimal:
    if value.__class__ is decimal.Decimal:
        return value
    if isinstance(value, (int, float, str, decimal.Decimal)) and not isinstance(value, bool):
        try:
            # By way of its digits, so that 0.1 is one tenth.
            return decimal.Decimal(str(value))
        except decimal.InvalidOperation:
            pass
    raise mismatch("BIG_DEC", value)


_CONVERTERS: dict[str, Converter] = {
    "STRING": _string,
    "BOOLEAN": _boolean,
    "BYTE": _bounded("BYTE", 8),
    "SHORT": _bounded("SHORT", 16),
    "INT": _bounded("INT", 32),
    "LONG": _bounded("LONG", 64),
    "FLOAT": _float,
    "DOUBLE": _double,
    "CHAR": _char,
    "BIG_INT": _big_int,
    "BIG_DEC": _big_dec,
}
