"""Broadcast state: maps that every subtask of an operator holds in full.

One input of the operator goes to all subtasks and writes them, the other only reads. Each subtask
applies the same records, so the copies agree, and each is in the checkpoint as a whole.
"""

from __future__ import annotations

import pickle
from collections.abc import Iterable, Iterator
from typing import Any, TypeVar

from penstock.errors import StateError
from penstock.state.interfaces import BroadcastState, ReadOnlyBroadcastState
from penstock.state.segments import NO_GROUP, GroupBlock

K = TypeVar("K")
V = TypeVar("V")

KIND = "broadcast"


class _ReadOnlyHeapState(ReadOnlyBroadcastState[K, V]):
    __slots__ = ("_entries", "_name")

    def __init__(self, name: str, entries: dict[K, V]) -> None:
        self._name = name
        self._entries = entries

    def get(self, key: K) -> V | None:
        return self._entries.get(key)

    def contains(self, key: K) -> bool:
        return key in self._entries

    # Lists, not views: whoever goes through them may write at the same time.

    def items(self) -> Iterable[tuple[K, V]]:
        return list(self._entries.items())

    def keys(self) -> Iterable[K]:
        return list(self._entries)

    def values(self) -> Iterable[V]:
        return list(self._entries.values())

    def is_empty(self) -> bool:
        return not self._entries

    def __iter__(self) -> Iterator[K]:
        return iter(list(self._entries))

    def clear(self) -> None:
        raise StateError(
            f"broadcast state {self._name!r} can be changed in process_broadcast_element only: "
            "elsewhere the subtasks would come to differ"
        )


class _HeapState(_ReadOnlyHeapState[K, V], BroadcastState[K, V]):
    __slots__ = ()

    def put(self, key: K, value: V) -> None:
        self._entries[key] = value

    def put_all(self, dict_value: dict[K, V]) -> None:
        self._entries.update(dict_value)

    def remove(self, key: K) -> None:
        self._entries.pop(key, None)

    def clear(self) -> None:
        self._entries.clear()


class BroadcastBackend:
    """The broadcast states of one operator in one subtask."""

    def __init__(self, names: Iterable[str]) -> None:
        self._entries: dict[str, dict[Any, Any]] = {name: {} for name in names}

    def writable(self, name: str) -> BroadcastState[Any, Any]:
        return _HeapState(name, self._declared(name))

    def read_only(self, name: str) -> ReadOnlyBroadcastState[Any, Any]:
        return _ReadOnlyHeapState(name, self._declared(name))

    def _declared(self, name: str) -> dict[Any, Any]:
        entries = self._entries.get(name)
        if entries is None:
            known = ", ".join(map(repr, self._entries))
            raise StateError(
                f"broadcast state {name!r} is not declared; broadcast() was called with the "
                f"descriptors of {known}"
            )
        return entries

    def blocks(self) -> list[GroupBlock]:
        """All states as they are now. Empty ones too: an older copy must not come back."""
        try:
            return [
                GroupBlock(name, KIND, NO_GROUP, pickle.dumps(entries, protocol=5))
                for name, entries in self._entries.items()
            ]
        except Exception as error:
            raise StateError(f"broadcast state cannot be written: {error}") from error

    def restore(self, block: GroupBlock) -> None:
        """Take over a state; one that is no longer declared is left behind."""
        if block.state in self._entries:
            self._entries[block.state] = pickle.loads(block.payload)
