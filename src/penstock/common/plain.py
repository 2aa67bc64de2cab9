"""Plain values: what may stand in a checkpoint's manifest.

Source positions, enumerator state and committables are read back by later versions, by other
processes and by people, so they are never pickled. They are built from None, bool, int, float,
str, bytes, and lists and string-keyed dicts of these, and written as JSON.

>>> decode(encode({"offset": 7, "raw": b"x"}, "a position"))
{'offset': 7, 'raw': b'x'}
"""

from __future__ import annotations

import base64
from typing import Any

from penstock.errors import ProgramError

Plain = Any
"""None, bool, int, float, str, bytes, or a list, tuple or string-keyed dict of plain values."""

_BYTES = "$bytes"


def encode(value: Plain, what: str) -> Any:
    """`value` as JSON can say it; `what` names it in the error when it is not plain."""
    if value is None or type(value) in (bool, int, float, str):
        return value
    if isinstance(value, bytes):
        return {_BYTES: base64.b64encode(value).decode("ascii")}
    if isinstance(value, (list, tuple)):
        return [encode(item, what) for item in value]
    if isinstance(value, dict) and all(type(key) is str for key in value):
        return {_escaped(key): encode(item, what) for key, item in value.items()}
    raise ProgramError(
        f"{what} holds a {type(value).__name__}, which cannot stand in a checkpoint's metadata; "
        "build it from None, bool, int, float, str, bytes, lists and string-keyed dicts"
    )


def decode(value: Any) -> Plain:
    """The inverse of `encode` (tuples come back as lists)."""
    if isinstance(value, list):
        return [decode(item) for item in value]
    if isinstance(value, dict):
        if value.keys() == {_BYTES}:
            return base64.b64decode(value[_BYTES])
        return {key[key.startswith("$") :]: decode(item) for key, item in value.items()}
    return value


def _escaped(key: str) -> str:
    """So that a dict which happens to have the key `$bytes` is not taken for bytes."""
    return f"${key}" if key.startswith("$") else key
