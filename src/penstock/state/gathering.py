"""Many entries on their way into the blocks of their key groups.

Keys and values lie in memory in the order in which they were made. In the order of key groups the
next one is always far away, and waiting for it takes longer than all that is done with it. So a
batch of entries at a time is dealt out to its key groups, and texts and bytes are joined at once,
while they are still near. What was joined goes to a spool when it is much, and waits there until
its block is written. What comes out is what `entries.encode_entries` makes of the entries of each
group:

>>> from penstock.common.key_batches import by_group, key_groups
>>> from penstock.common.spool import Spool, whole
>>> from penstock.common.typeinfo import Types
>>> from penstock.state.entries import encode_entries
>>> keys = ["a", "b", "c"]
>>> mine = by_group(key_groups(keys, 2), keys)[0]
>>> parts = gather(keys, keys, 2, Types.STRING(), str, Spool())[0].parts()
>>> whole(parts) == encode_entries(Types.STRING(), mine, mine)
True
"""

from __future__ import annotations

import contextlib
import importlib.util
from collections.abc import Callable, Sequence
from functools import lru_cache
from itertools import chain
from typing import Any, NamedTuple, Protocol

from penstock.common.key_batches import group_batches
from penstock.common.spool import Spool
from penstock.common.typeinfo import TypeInformation
from penstock.state.columns import Parts, joined_letter, write_column, write_joined
from penstock.state.entries import begin_entries, key_type, only_type

_ENOUGH = 64
"""Fewer values than that are not worth joining yet."""
_MANY = 1 << 17
"""Fewer entries than that are not worth the time to import pyarrow."""


class Column(Protocol):
    """The keys of one key group, or their values."""

    def __len__(self) -> int: ...

    def write(self, parts: Parts) -> None:
        """Append the bytes of the column, as `columns.write_column` would."""
        ...


class _Growing(Column, Protocol):
    waiting: list[Any]
    """The latest of them. Whoever has more appends them here; it is always the same list."""

    def settle(self, enough: int) -> int:
        """Do what can be done with those that wait, if there are `enough` of them.

        How many bytes that made.
        """
        ...

    def spill(self, spool: Spool) -> None:
        """Leave the bytes that there are to the spool."""
        ...


class _Listed:
    """Waits for all of its values."""

    def __init__(self, kind: TypeInformation | None, only: type | None) -> None:
        """Without a kind they are keys, and written as what they are."""
        self.waiting: list[Any] = []
        self._kind = kind
        self._only = only

    def __len__(self) -> int:
        return len(self.waiting)

    def settle(self, enough: int) -> int:
        """Nothing: how they are written may depend on all of them."""
        return 0

    def spill(self, spool: Spool) -> None:
        """Nothing: there are no bytes yet."""

    def write(self, parts: Parts) -> None:
        kind = self._kind or key_type(self._only or only_type(self.waiting))
        write_column(parts, kind, self.waiting, self._only)


class _Joined:
    """Joins texts, or bytes, as they come."""

    def __init__(self, letter: bytes) -> None:
        self.waiting: list[Any] = []
        self._letter = letter
        self._join = _JOINS[letter]
        self._lengths: list[int] = []
        self._data: Parts = []

    def __len__(self) -> int:
        return len(self._lengths) + len(self.waiting)

    def settle(self, enough: int) -> int:
        waiting = self.waiting
        if len(waiting) < enough:
            return 0
        # First what touches all of each value: then its length is near.
        data = self._join(waiting)
        self._data.append(data)
        self._lengths.extend(map(len, waiting))
        waiting.clear()
        return len(data)

    def spill(self, spool: Spool) -> None:
        self._data = spool.put(self._data)

    def write(self, parts: Parts) -> None:
        self.settle(1)
        write_joined(parts, self._letter, self._lengths, self._data)


def _join_texts(texts: list[str]) -> bytes:
    return "".join(texts).encode("utf-8", "surrogatepass")


_JOINS: dict[bytes, Callable[[list[Any]], bytes]] = {b"s": _join_texts, b"y": b"".join}


class Gathered(NamedTuple):
    """The entries of one key group."""

    keys: Column
    values: Column

    def parts(self, removed: Sequence[Any] = ()) -> Parts:
        """The bytes of their block; any error that a value's own code raises comes through."""
        parts = begin_entries(removed, len(self.keys))
        self.keys.write(parts)
        self.values.write(parts)
        return parts


def gather(
    keys: Sequence[Any],
    values: Sequence[Any],
    max_parallelism: int,
    kind: TypeInformation,
    only: type | None,
    spool: Spool,
) -> dict[int, Gathered]:
    """The entries by key group. `only` is the type of all values, if they have one in common."""
    key = only_type(keys)
    key_letter, value_letter = joined_letter(key_type(key), key), joined_letter(kind, only)
    if key_letter and value_letter and len(keys) >= _MANY and _arrow_installed():
        from penstock.state.arrow_gathering import slice_by_group

        # Half of a surrogate pair is nothing that pyarrow takes.
        with contextlib.suppress(UnicodeEncodeError):
            sliced = slice_by_group(keys, values, max_parallelism, key_letter, value_letter, spool)
            return {group: Gathered(*columns) for group, columns in sliced.items()}
    return _deal(
        keys,
        values,
        max_parallelism,
        key,
        lambda: _Joined(key_letter) if key_letter else _Listed(None, key),
        lambda: _Joined(value_letter) if value_letter else _Listed(kind, only),
        spool,
    )


@lru_cache(maxsize=1)
def _arrow_installed() -> bool:
    return all(importlib.util.find_spec(name) is not None for name in ("numpy", "pyarrow"))


def _deal(
    keys: Sequence[Any],
    values: Sequence[Any],
    max_parallelism: int,
    key: type | None,
    key_column: Callable[[], _Growing],
    value_column: Callable[[], _Growing],
    spool: Spool,
) -> dict[int, Gathered]:
    growing: dict[int, tuple[_Growing, _Growing]] = {}
    # Two lists to look up in, and one loop: every entry of the state passes here.
    nowhere: list[Any] = []
    keys_of, values_of = [nowhere] * max_parallelism, [nowhere] * max_parallelism
    values_left = iter(values)
    joined = 0
    for batch, groups in group_batches(keys, max_parallelism, key):
        present = set(groups)
        for group in present.difference(growing):
            columns = growing[group] = key_column(), value_column()
            keys_of[group], values_of[group] = (column.waiting for column in columns)
        # Not strict: it takes as many values as there are keys, and the next batch goes on.
        for group, each, value in zip(groups, batch, values_left, strict=False):
            keys_of[group].append(each)
            values_of[group].append(value)
        for group in present:
            for column in growing[group]:
                joined += column.settle(_ENOUGH)
            if joined > spool.limit:
                for column in chain(*growing.values()):
                    column.spill(spool)
                joined = 0
    return {group: Gathered(*columns) for group, columns in growing.items()}
