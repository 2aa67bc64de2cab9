"""The key groups of keys whose bytes lie one after another, with numpy.

The checksum of all of them is made together: of their first bytes, then of their second ones.

>>> from penstock.common.keys import key_group
>>> places, content = np.array([0, 3, 3, 5]), np.frombuffer("abcü".encode(), np.uint8)
>>> packed_key_groups(places, content, b"s", 128).tolist() == [
...     key_group(key, 128) for key in ("abc", "", "ü")
... ]
True
"""

from __future__ import annotations

import zlib
from typing import Any

import numpy as np

Numbers = np.ndarray[Any, np.dtype[Any]]

_ALL = 0xFFFFFFFF


def _table() -> Numbers:
    """What the CRC of `zlib.crc32` does to each value of a byte."""
    table: Numbers = np.arange(256, dtype=np.uint32)
    for _ in range(8):
        table = (table >> 1) ^ (table & 1) * np.uint32(0xEDB88320)
    return table


_TABLE = _table()


def packed_key_groups(
    places: Numbers, content: Numbers, prefix: bytes, max_parallelism: int
) -> Numbers:
    """The key group of each key: what `keys.key_group` says of it.

    `places` says where in `content` each key begins, and at its end where the last one ends;
    `prefix` is what `keys.encode_key` puts before keys of this type.
    """
    mixed = _checksums(places, content, prefix)
    # The rounds of `keys.group_of_encoding`; what goes beyond 32 bits is lost by itself.
    mixed = (mixed ^ (mixed >> 16)) * np.uint32(0x85EBCA6B)
    mixed = (mixed ^ (mixed >> 13)) * np.uint32(0xC2B2AE35)
    groups: Numbers = (mixed ^ (mixed >> 16)) % np.uint32(max_parallelism)
    return groups.astype(np.uint16)


def _checksums(places: Numbers, content: Numbers, prefix: bytes) -> Numbers:
    sizes = np.diff(places)
    # The longest first: those that are longer than a number are the first so many.
    order = np.argsort(-sizes, kind="stable")
    starts, shorter = places[:-1][order], -sizes[order]
    states = np.full(len(sizes), zlib.crc32(prefix) ^ _ALL, np.uint32)
    for at in range(-int(shorter[0]) if len(sizes) else 0):
        count = np.searchsorted(shorter, -at)
        some = states[:count]
        states[:count] = _TABLE[(some ^ content[starts[:count] + at]) & 0xFF] ^ (some >> 8)
    checksums = np.empty_like(states)
    checksums[order] = ~states
    return checksums
