"""Values of JSON that are to have a type; ValueError where one has another.

>>> number(4, least=1)
4
"""

from __future__ import annotations

from typing import Any

from penstock.common.typeinfo.base import shorten

_END = 1 << 63
"""No number in a manifest is larger."""


def text(value: Any) -> str:
    if type(value) is not str:
        raise _wrong("a text", value)
    return value


def number(value: Any, least: int = -_END, most: int = _END - 1) -> int:
    # Not a bool, which Python takes for a number, too.
    if type(value) is not int or not least <= value <= most:
        raise _wrong(f"a number between {least} and {most}", value)
    return value


def flag(value: Any) -> bool:
    if type(value) is not bool:
        raise _wrong("true or false", value)
    return value


def listed(value: Any) -> list[Any]:
    if type(value) is not list:
        raise _wrong("a list", value)
    return value


def mapped(value: Any) -> dict[str, Any]:
    if type(value) is not dict:
        raise _wrong("an object", value)
    return value


def _wrong(expected: str, value: Any) -> ValueError:
    return ValueError(f"it has {shorten(value)} where {expected} belongs")
