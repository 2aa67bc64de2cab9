"""The entries of one state in one key group as bytes: what a block of a segment holds.

    number removed, number kept, removed keys, kept keys, values

Keys and values are columns. Keys of one basic type are written in its compact form, others are
pickled; values are written as their type was declared.
"""

from __future__ import annotations

import pickle
import re
import struct
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from penstock.common.spool import whole
from penstock.common.typeinfo import TypeInformation, Types
from penstock.common.typeinfo.base import shorten
from penstock.common.unpicklable import why
from penstock.errors import CorruptCheckpointError, StateError
from penstock.state.columns import ColumnReader, Parts, Unpickle, unpickled, write_column
from penstock.state.schema import PICKLED, Schema, needs_pickle, type_of

_COUNTS = struct.Struct("<II")
_OF_THE_SCRIPT = re.compile(r"attribute '([\w.]+)'")
_KEY_TYPES: dict[type, TypeInformation] = {
    str: Types.STRING(),
    int: Types.BIG_INT(),
    bytes: Types.PRIMITIVE_ARRAY(Types.BYTE()),
}


def encode_entries(
    kind: TypeInformation,
    keys: Sequence[Any],
    values: Sequence[Any],
    removed: Sequence[Any] = (),
) -> bytes:
    """The bytes of a block; any error that a value's own code raises comes through."""
    parts = begin_entries(removed, len(keys))
    write_column(parts, key_type(only_type(keys)), keys)
    write_column(parts, kind, values)
    return whole(parts)


def begin_entries(removed: Sequence[Any], kept: int) -> Parts:
    """How a block begins; the columns of the keys that are kept and of their values follow."""
    parts: Parts = [_COUNTS.pack(len(removed), kept)]
    write_column(parts, key_type(only_type(removed)), removed)
    return parts


def only_type(values: Iterable[Any]) -> type | None:
    """The type of all values, if they have one in common."""
    types = set(map(type, values))
    return types.pop() if len(types) == 1 else None


def decode_entries(
    payload: bytes, schema: Schema, unpickle: Unpickle = unpickled
) -> tuple[list[Any], list[Any], list[Any]]:
    """The keys, their values, and the keys that were removed.

    CorruptCheckpointError if values are pickled and those of their type, `schema`, never are.
    """
    removed, kept = _COUNTS.unpack_from(payload)
    reader = ColumnReader(payload, _COUNTS.size, unpickle)
    gone, keys = reader.column(removed), reader.column(kept)
    if not needs_pickle(schema):
        reader.unpickle = _Refusal(schema)
    return keys, reader.column(kept), gone


@dataclass(frozen=True)
class _Refusal:
    """What is done with a pickled column of values whose type needs no pickle: nothing."""

    schema: Schema

    def __call__(self, data: bytes) -> list[Any]:
        raise CorruptCheckpointError(
            f"values of the type {type_of(self.schema)} are pickled, which Penstock never does: "
            "the state was altered, and is not unpickled"
        )


def restored_entries(
    state: str, payload: bytes, schema: Schema
) -> tuple[list[Any], list[Any], list[Any]]:
    """The same for whoever restores `state`; StateError if its objects cannot be made again."""
    try:
        return decode_entries(payload, schema)
    except UNREADABLE as error:
        raise unreadable(state, error) from error


def has_removals(payload: bytes) -> bool:
    """Whether the block says of any key that it was removed."""
    removed, _ = _COUNTS.unpack_from(payload)
    return bool(removed)


def merge_entries(
    kind: TypeInformation, blocks: Iterable[tuple[bytes, Schema]], *, keep_removed: bool = False
) -> bytes | None:
    """Blocks of one state and key group, oldest first, as one; None if nothing is left.

    If the oldest is the first there is, what was removed is gone, and need not be kept.
    """
    entries: dict[Any, Any] = {}
    gone: dict[Any, None] = {}
    for payload, schema in blocks:
        keys, values, removed = decode_entries(payload, schema)
        entries.update(zip(keys, values, strict=True))
        for key in removed:
            entries.pop(key, None)
        if keep_removed:
            for key in keys:
                gone.pop(key, None)
            gone.update(dict.fromkeys(removed))
    if not entries and not gone:
        return None
    return encode_entries(kind, list(entries), list(entries.values()), list(gone))


def unwritable(
    state: str, kind: TypeInformation, keys: Sequence[Any], values: Sequence[Any], error: Exception
) -> StateError:
    """The error that names the key whose value cannot be written."""
    for key, value in zip(keys, values, strict=True):
        try:
            encode_entries(kind, [key], [value])
        except Exception as its_own:
            return StateError(
                f"state {state!r} of key {shorten(key)} cannot be written: "
                f"{type(its_own).__name__}: {why(its_own)}"
            )
    return StateError(f"state {state!r} cannot be written: {type(error).__name__}: {why(error)}")


def unreadable(state: str, error: Exception) -> StateError:
    """The error for pickled objects that cannot be made again."""
    missing = _OF_THE_SCRIPT.search(str(error))
    if isinstance(error, AttributeError) and missing and "'__main__'" in str(error):
        return StateError(
            f"state {state!r} has objects of the class __main__.{missing[1]}, which the script "
            "does not define: give it a class of that name at its top level, with the fields it had"
        )
    return StateError(
        f"state {state!r} has pickled objects that cannot be read here: "
        f"{type(error).__name__}: {error}; make the modules of their classes importable"
    )


UNREADABLE = (pickle.UnpicklingError, AttributeError, ImportError, TypeError, ValueError)
"""What unpickling raises where that is so."""


def key_type(only: type | None) -> TypeInformation:
    """The type to write keys with that have the type `only` in common, or none."""
    return PICKLED if only is None else _KEY_TYPES.get(only, PICKLED)
