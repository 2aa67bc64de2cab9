"""The order of entries in a database of RocksDB: by table, key group and key.

>>> place(0, 5) < place(0, 300) < end_of(0) < place(1, 0)
True
"""

from __future__ import annotations

import struct

_PLACE = struct.Struct(">HH")
PLACE_BYTES = _PLACE.size
_BEHIND = 0xFFFF


def place(table: int, group: int) -> bytes:
    """What the keys of a table's entries in a key group begin with."""
    return _PLACE.pack(table, group)


def end_of(table: int) -> bytes:
    """Behind all entries of a table."""
    return place(table, _BEHIND)


def table_of(key: bytes) -> int:
    """The table that an entry is in."""
    table: int = _PLACE.unpack_from(key)[0]
    return table


def group_of(key: bytes) -> int:
    """The key group that an entry is in."""
    group: int = _PLACE.unpack_from(key)[1]
    return group
