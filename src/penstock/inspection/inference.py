"""The type of a key, where nobody declared one: that of a key that is there.

>>> inferred(("merchant", 7))
TUPLE(STRING, LONG)
"""

from __future__ import annotations

import datetime
import decimal
from typing import Any

from penstock.common.time import Instant
from penstock.common.typeinfo import TypeInformation, Types
from penstock.common.types import Row
from penstock.inspection.catalog import Catalog, StateInfo, index_of
from penstock.inspection.entries import decoded, parts_of
from penstock.state.segments import GroupBlock

_TYPES: dict[type, TypeInformation] = {
    str: Types.STRING(),
    bool: Types.BOOLEAN(),
    int: Types.LONG(),
    float: Types.DOUBLE(),
    bytes: Types.PRIMITIVE_ARRAY(Types.BYTE()),
    decimal.Decimal: Types.BIG_DEC(),
    datetime.date: Types.SQL_DATE(),
    datetime.time: Types.SQL_TIME(),
    datetime.datetime: Types.SQL_TIMESTAMP(),
    Instant: Types.INSTANT(),
}


def inferred(value: Any) -> TypeInformation:
    """The type of a value; one that has none is pickled."""
    if type(value) is tuple:
        return Types.TUPLE(list(map(inferred, value)))
    if type(value) is Row and value._fields is not None:
        return Types.ROW_NAMED(value._fields, list(map(inferred, value)))
    return _TYPES.get(type(value), Types.PICKLED_BYTE_ARRAY())


def key_type(catalog: Catalog, uid: str, state: StateInfo, trust: bool) -> TypeInformation:
    """The type of the first key there is; only its block is read."""
    store = catalog.snapshot.store
    for part in catalog.saved(uid).parts:
        for handle in part.segments:
            for place in () if handle.file else index_of(catalog.snapshot, handle)[1]:
                if (place.state, place.kind) == (state.name, state.kind):
                    payload = store.read_part(handle.path, place.start, place.size)
                    what = (place.state, place.kind, place.group)
                    keys, _, _ = decoded(GroupBlock(*what, [payload], place.schema), trust)
                    if keys:
                        return inferred(keys[0])
    # Nothing upon the files of databases yet.
    for held in parts_of(catalog, uid, state, trust):
        for block in held.blocks():
            keys, _, _ = decoded(block, trust)
            if keys:
                return inferred(keys[0])
    return Types.PICKLED_BYTE_ARRAY()
