"""The entries of a table in RocksDB as blocks, one key group after another."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import groupby
from typing import Any

from penstock import kept
from penstock.common.typeinfo import TypeInformation
from penstock.state.capture import encode_block
from penstock.state.entries import UNREADABLE, unreadable
from penstock.state.rocks_database import View
from penstock.state.rocks_keys import PLACE_BYTES, group_of, place
from penstock.state.schema import schema_of
from penstock.state.segments import GroupBlock
from penstock.state.sweep import Prune


def table_blocks(
    view: View,
    number: int,
    groups: range,
    state: str,
    kind: str,
    type_info: TypeInformation,
    prune: Prune | None = None,
) -> Iterator[GroupBlock]:
    """The entries of table `number` that lie in `groups`; `prune` takes out expired ones."""
    schema = schema_of(type_info)
    items = view.between(place(number, groups.start), place(number, groups.stop))
    for prefix, entries in groupby(items, lambda item: item[0][:PLACE_BYTES]):
        keys, values = [], []
        for _, data in entries:
            key, value = _unpickled(state, data)
            value = value if prune is None else prune(value)
            if value is not None or prune is None:
                keys.append(key)
                values.append(value)
        if keys:
            payload = encode_block(state, type_info, keys, values)
            yield GroupBlock(state, kind, group_of(prefix), [payload], schema)


def _unpickled(state: str, data: bytes) -> Any:
    try:
        return kept.loads(data)
    except UNREADABLE as error:
        raise unreadable(state, error) from error
