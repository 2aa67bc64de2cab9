"""One state of one operator, looked up by keys that somebody typed.

>>> candidates("42"), candidates("a"), candidates('["a", 1]')
([42, '42'], ['a'], [('a', 1), '["a", 1]'])
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from penstock.common.keys import key_group
from penstock.common.typeinfo.base import shorten
from penstock.errors import StateError, UnsupportedKeyError
from penstock.inspection.catalog import Catalog, StateInfo
from penstock.inspection.entries import StatePart, parts_of
from penstock.state.broadcast import KIND as BROADCAST

_NAMED = 10
"""So many keys are named where one is not found."""


class Lookup:
    """The entries of a state. Only with `trust` it unpickles what is pickled."""

    def __init__(self, catalog: Catalog, uid: str, state: StateInfo, trust: bool = False) -> None:
        self._uid = uid
        self._state = state
        self._parts = parts_of(catalog, uid, state, trust)
        self._max_parallelism = catalog.operator(uid).max_parallelism

    def entries(self) -> Iterator[tuple[Any, Any]]:
        """All keys with what is stored for them; of a list (subtask, position) and the element."""
        if self._state.keyed:
            for part in self._parts:
                yield from part.entries()
        elif self._state.kind == BROADCAST:
            # Every subtask has the same.
            for part in self._parts[:1]:
                yield from ((key, value) for _, key, value in part.unkeyed())
        else:
            for part in self._parts:
                yield from (((at, key), value) for at, key, value in part.unkeyed())

    def find(self, text: str) -> Any:
        """What is stored for the key that `text` says; StateError names keys that there are."""
        for key in candidates(text) if self._state.keyed else ():
            for part in self._parts_of_key(key):
                for found, value in part.entries():
                    if found == key:
                        return value
        keys: list[str] = []
        count = 0
        for found, value in self.entries():
            if str(found) == text or repr(found) == text or found in candidates(text):
                return value
            count += 1
            if len(keys) < _NAMED:
                keys.append(shorten(found))
        there = f"it has {count:,}: {', '.join(keys)}" if keys else "it has none"
        raise StateError(
            f"state {self._state.name!r} of {self._uid!r} has no key {text}; "
            f"{there}{', ...' if count > len(keys) else ''}"
        )

    def _parts_of_key(self, key: Any) -> Iterator[StatePart]:
        try:
            group = key_group(key, self._max_parallelism)
        except UnsupportedKeyError:
            return
        for part in self._parts:
            yield replace(part, groups=range(group, group + 1))


def candidates(text: str) -> list[Any]:
    """The keys that somebody may mean by `text`, the likeliest first."""
    try:
        read = _as_key(json.loads(text))
    except ValueError:
        return [text]
    return [text] if isinstance(read, dict) else [read, text]


def _as_key(value: Any) -> Any:
    return tuple(map(_as_key, value)) if isinstance(value, list) else value
