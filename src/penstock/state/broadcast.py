"""Broadcast state: maps that every subtask of an operator holds in full.

One input of the operator goes to all subtasks and writes them, the other only reads. Each subtask
applies the same records, so the copies agree, and each is in the checkpoint as a whole.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, TypeVar

from penstock.common.keys import NO_GROUP
from penstock.common.typeinfo import TypeInformation
from penstock.errors import StateError
from penstock.state.checked import checked
from penstock.state.descriptors import MapStateDescriptor, refuse_ttl
from penstock.state.entries import encode_entries, restored_entries, unwritable
from penstock.state.interfaces import BroadcastState, ReadOnlyBroadcastState
from penstock.state.migration import migration_of_state
from penstock.state.schema import PICKLED, schema_of, type_of
from penstock.state.segments import GroupBlock

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
        self._types: dict[str, TypeInformation] = {}
        self._kinds: dict[str, type] = {}
        """The classes of the states that are written, by name."""
        self._saved: dict[str, TypeInformation] = {}
        self._left_behind: dict[str, dict[Any, Any]] = {}

    def declare(self, descriptor: MapStateDescriptor) -> None:
        """Have a state of this name, with what was restored of it."""
        name = descriptor.name
        refuse_ttl(descriptor, "broadcast state")
        if name not in self._entries:
            self._entries[name] = self._left_behind.pop(name, {})
        declared = descriptor.type_info
        migrate = migration_of_state(name, self._saved.pop(name, declared), declared)
        if migrate is not None:
            entries = self._entries[name]
            entries.update({key: migrate(value) for key, value in entries.items()})
        self._types[name] = declared

    def writable(self, descriptor: MapStateDescriptor) -> BroadcastState[Any, Any]:
        name = descriptor.name
        if name not in self._kinds:
            self._kinds[name] = checked(_HeapState, descriptor)
        state: BroadcastState[Any, Any] = self._kinds[name](name, self._declared(name))
        return state

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
        return [self._block(name, entries) for name, entries in self._entries.items()]

    def _block(self, name: str, entries: dict[Any, Any]) -> GroupBlock:
        kind = self._types.get(name, PICKLED)
        keys, values = list(entries), list(entries.values())
        try:
            payload = encode_entries(kind, keys, values)
        except Exception as error:
            raise unwritable(name, kind, keys, values, error) from error
        return GroupBlock(name, KIND, NO_GROUP, [payload], schema_of(kind))

    def restore(self, block: GroupBlock) -> None:
        """Take over a state; one that is not declared, now or later, is left behind."""
        keys, values, _ = restored_entries(block.state, block.payload, block.schema)
        entries = dict(zip(keys, values, strict=True))
        target = self._entries if block.state in self._entries else self._left_behind
        target[block.state] = entries
        self._saved[block.state] = type_of(block.schema)
