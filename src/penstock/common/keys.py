"""Keys: their canonical encoding, their key group, and which subtask owns them.

State is found again by key after a restart, on another machine, at another parallelism. So a key's
place must depend on nothing but the key: not on Python's `hash` (salted per process) and not on
which of several equal objects was used. Equal keys share one encoding, at any depth of nesting:

>>> encode_key((1, "a")) == encode_key((1.0, "a")) == encode_key((True, "a"))
True
>>> key_group("merchant-7", 128) == key_group("merchant-7", 128)
True
"""

from __future__ import annotations

import dataclasses
import datetime
import decimal
import enum
import fractions
import math
import uuid
import zlib
from collections.abc import Callable
from typing import Any

from penstock.common.types import Row
from penstock.errors import UnsupportedKeyError

DEFAULT_MAX_PARALLELISM = 128
MAX_PARALLELISM_LIMIT = 32768

NO_GROUP = -1
"""In the place of a key group, for state that belongs to a subtask as a whole and to no key."""
UNION_GROUP = -2
"""The same, where on restore every subtask is given what all of them had."""

_MASK = 0xFFFFFFFF


def key_group(key: Any, max_parallelism: int) -> int:
    """The key group of a key: a number in `range(max_parallelism)`."""
    return group_of_encoding(encode_key(key), max_parallelism)


def group_of_encoding(encoding: bytes, max_parallelism: int) -> int:
    """The key group of the key that has this encoding."""
    # CRC spreads single bits badly over the low ones; the multiply-and-shift rounds mend that.
    mixed = zlib.crc32(encoding)
    mixed = ((mixed ^ (mixed >> 16)) * 0x85EBCA6B) & _MASK
    mixed = ((mixed ^ (mixed >> 13)) * 0xC2B2AE35) & _MASK
    return (mixed ^ (mixed >> 16)) % max_parallelism


def subtask_of_group(group: int, max_parallelism: int, parallelism: int) -> int:
    """The subtask that owns a key group."""
    return group * parallelism // max_parallelism


def groups_of_subtask(subtask: int, max_parallelism: int, parallelism: int) -> range:
    """The key groups that a subtask owns."""
    start = -(-subtask * max_parallelism // parallelism)
    end = -(-(subtask + 1) * max_parallelism // parallelism)
    return range(start, end)


class Router(dict[Any, int]):
    """A bounded memory of which subtask owns a key, so that known keys cost one lookup."""

    LIMIT = 1 << 16

    def __init__(self, max_parallelism: int, parallelism: int) -> None:
        super().__init__()
        self._max_parallelism = max_parallelism
        self._parallelism = parallelism

    def __missing__(self, key: Any) -> int:
        group = key_group(key, self._max_parallelism)
        subtask = subtask_of_group(group, self._max_parallelism, self._parallelism)
        if len(self) >= self.LIMIT:
            self.clear()
        self[key] = subtask
        return subtask


def encode_key(key: Any) -> bytes:
    """The canonical encoding; UnsupportedKeyError for what has none."""
    encoder = _ENCODERS.get(type(key))
    return encoder(key) if encoder is not None else _encode_by_base(key)


def _encode_str(key: str) -> bytes:
    return b"s" + key.encode("utf-8", "surrogatepass")


def _encode_int(key: int) -> bytes:
    return b"i" + _digits(key)


def _digits(number: int) -> bytes:
    # Beyond some thousands of digits Python refuses to write decimal, and a setting moves the mark.
    return b"%d" % number if number.bit_length() <= 4096 else b"x%x" % number


def _encode_float(key: float) -> bytes:
    if math.isinf(key):
        return b"i+inf" if key > 0 else b"i-inf"
    return _encode_ratio(key)


def _encode_decimal(key: decimal.Decimal) -> bytes:
    # Not `math.isinf`: a large decimal is not infinite, only too large for a float.
    if key.is_infinite():
        return b"i+inf" if key > 0 else b"i-inf"
    return _encode_ratio(key)


def _encode_ratio(key: float | decimal.Decimal | fractions.Fraction) -> bytes:
    try:
        numerator, denominator = key.as_integer_ratio()
    except ValueError:
        raise UnsupportedKeyError("NaN is not equal to itself, so it cannot be a key") from None
    digits = _digits(numerator)
    return b"i" + digits if denominator == 1 else b"i" + digits + b"/" + _digits(denominator)


def _encode_parts(tag: bytes, parts: list[bytes]) -> bytes:
    return tag + b"".join(b"%d:" % len(part) + part for part in parts)


def _encode_tuple(key: tuple[Any, ...]) -> bytes:
    return _encode_parts(b"t", [encode_key(part) for part in key])


def _encode_set(key: frozenset[Any]) -> bytes:
    return _encode_parts(b"f", sorted(encode_key(part) for part in key))


def _encode_row(key: Row) -> bytes:
    names = key._fields
    shape = [key.get_row_kind().name.encode(), encode_key(None if names is None else tuple(names))]
    return _encode_parts(b"r", [*shape, *(encode_key(part) for part in key)])


def _encode_datetime(key: datetime.datetime) -> bytes:
    # The two readings of an hour that happens twice are equal, so which one it was is left out.
    key = key.replace(fold=0)
    if key.utcoffset() is not None:
        return b"z" + key.astimezone(datetime.timezone.utc).isoformat().encode()
    return b"n" + key.replace(tzinfo=None).isoformat().encode()


def _encode_time(key: datetime.time) -> bytes:
    offset = key.utcoffset()
    if offset is None:
        return b"h" + key.isoformat().encode()
    start = datetime.datetime(2000, 1, 1)
    moment = datetime.datetime.combine(start, key.replace(tzinfo=None)) - offset
    return b"o%d" % ((moment - start) // datetime.timedelta(microseconds=1))


def _encode_by_base(key: Any) -> bytes:
    """Enums, frozen dataclasses, and subclasses of the basic types (a named tuple, for example)."""
    if isinstance(key, enum.Enum) and not isinstance(key, tuple(_ENCODERS)):
        return _encode_parts(b"e", [type(key).__qualname__.encode(), key.name.encode()])
    parameters = getattr(type(key), "__dataclass_params__", None)
    if parameters is not None and parameters.frozen and parameters.eq:
        compared = [field.name for field in dataclasses.fields(key) if field.compare]
        parts = [encode_key(getattr(key, name)) for name in compared]
        return _encode_parts(b"d", [type(key).__qualname__.encode(), *parts])
    for base, encoder in _ENCODERS.items():
        if isinstance(key, base):
            return encoder(key)
    number = _number_of_numpy(key)
    if number is not None:
        return encode_key(number)
    raise UnsupportedKeyError(
        f"a {type(key).__name__} cannot be a key: it has no encoding that is the same in every "
        "process; use None, bool, numbers, str, bytes, dates, UUIDs, enums, frozen dataclasses, "
        "or tuples, frozensets and Rows of these"
    )


def _number_of_numpy(key: Any) -> bool | int | float | None:
    """The number that a scalar of numpy is, to which it is equal; None if it is none."""
    # By its shape, not by its type: who has no numpy must not need it.
    if getattr(getattr(key, "dtype", None), "kind", "") not in ("b", "i", "u", "f"):
        return None
    if not key.__hash__:
        return None  # an array
    plain = key.item()
    return plain if isinstance(plain, bool | int | float) else None


_ENCODERS: dict[type, Callable[[Any], bytes]] = {
    str: _encode_str,
    int: _encode_int,
    bool: _encode_int,
    float: _encode_float,
    type(None): lambda key: b"0",
    bytes: lambda key: b"b" + key,
    tuple: _encode_tuple,
    frozenset: _encode_set,
    Row: _encode_row,
    decimal.Decimal: _encode_decimal,
    fractions.Fraction: _encode_ratio,
    datetime.datetime: _encode_datetime,
    datetime.date: lambda key: b"y" + key.isoformat().encode(),
    datetime.time: _encode_time,
    datetime.timedelta: lambda key: _encode_parts(
        b"l", [b"%d" % key.days, b"%d" % key.seconds, b"%d" % key.microseconds]
    ),
    uuid.UUID: lambda key: b"u" + key.bytes,
}
