"""Operator state: lists and maps that belong to a subtask and to no key.

*List* state is dealt out anew when the number of subtasks changes; of *union list* state every
subtask is given all elements on every restore; *broadcast* state is a map that every subtask holds
in full (`penstock.state.broadcast`). All of it is small, is written in full at every checkpoint,
and lies in segments of its own: one of the subtask's, one of what all subtasks must see.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any, TypeVar

from penstock.common.keys import NO_GROUP, UNION_GROUP
from penstock.common.typeinfo import TypeInformation
from penstock.errors import StateError
from penstock.state.broadcast import KIND as BROADCAST
from penstock.state.broadcast import BroadcastBackend
from penstock.state.checked import checked
from penstock.state.descriptors import ListStateDescriptor, MapStateDescriptor, refuse_ttl
from penstock.state.entries import encode_entries, restored_entries, unwritable
from penstock.state.interfaces import BroadcastState, ListState
from penstock.state.migration import migration_of_state
from penstock.state.redistribution import copy_of, split, union
from penstock.state.schema import schema_of, type_of
from penstock.state.segments import GroupBlock, Origin, decode_segment, origin_of

T = TypeVar("T")

LIST, UNION = "operator-list", "operator-union"
_GROUPS = {LIST: NO_GROUP, UNION: UNION_GROUP}


class OperatorStateStore(ABC):
    """The way to state that belongs to a subtask and to no key."""

    @abstractmethod
    def get_list_state(self, state_descriptor: ListStateDescriptor) -> ListState[Any]:
        """A list whose elements are dealt out anew when the number of subtasks changes."""

    @abstractmethod
    def get_union_list_state(self, state_descriptor: ListStateDescriptor) -> ListState[Any]:
        """A list of which every subtask is given the elements of all, whenever it is restored."""

    @abstractmethod
    def get_broadcast_state(self, state_descriptor: MapStateDescriptor) -> BroadcastState[Any, Any]:
        """A map of which every subtask holds the whole; keeping the copies alike is up to you."""


class _OperatorList(ListState[T]):
    """A list in memory."""

    __slots__ = ("_elements",)

    def __init__(self, elements: list[T]) -> None:
        self._elements = elements

    def get(self) -> Iterable[T]:
        # A copy: whoever goes through it may add at the same time.
        return list(self._elements)

    def add(self, value: T) -> None:
        self._elements.append(value)

    def add_all(self, values: list[T]) -> None:
        self._elements.extend(values)

    def update(self, values: list[T]) -> None:
        self._elements[:] = list(values)

    def clear(self) -> None:
        self._elements.clear()


@dataclass
class _Declared:
    """One list: its kind, the type of its elements, the elements."""

    kind: str
    type_info: TypeInformation
    elements: list[Any] = field(default_factory=list)


class OperatorStateBackend(OperatorStateStore):
    """The operator state of one operator in one subtask."""

    def __init__(self, broadcast_names: Iterable[str] = ()) -> None:
        self.broadcast = BroadcastBackend(broadcast_names)
        self._lists: dict[str, _Declared] = {}

    def get_list_state(self, state_descriptor: ListStateDescriptor) -> ListState[Any]:
        return self._list(state_descriptor, LIST)

    def get_union_list_state(self, state_descriptor: ListStateDescriptor) -> ListState[Any]:
        return self._list(state_descriptor, UNION)

    def get_broadcast_state(self, state_descriptor: MapStateDescriptor) -> BroadcastState[Any, Any]:
        self.broadcast.declare(state_descriptor)
        return self.broadcast.writable(state_descriptor)

    def _list(self, descriptor: ListStateDescriptor, kind: str) -> ListState[Any]:
        name = descriptor.name
        refuse_ttl(descriptor, "operator state")
        found = self._lists.setdefault(name, _Declared(kind, descriptor.type_info))
        if found.kind != kind:
            raise StateError(
                f"operator state {name!r} is {found.kind} state and is asked for as {kind} state; "
                "give one of them another name"
            )
        migrate = migration_of_state(name, found.type_info, descriptor.type_info)
        if migrate is not None:
            found.elements[:] = map(migrate, found.elements)
        found.type_info = descriptor.type_info
        state: ListState[Any] = checked(_OperatorList, descriptor)(found.elements)
        return state

    def blocks(self) -> list[GroupBlock]:
        """All of it as it is now. Empty states too: an older copy must not come back."""
        blocks = self.broadcast.blocks()
        for name, state in self._lists.items():
            kind, elements = state.type_info, state.elements
            # A list is written as entries by position: errors then name the element.
            positions = list(range(len(elements)))
            try:
                payload = encode_entries(kind, positions, elements)
            except Exception as error:
                raise unwritable(name, kind, positions, elements, error) from error
            group = _GROUPS[state.kind]
            blocks.append(GroupBlock(name, state.kind, group, [payload], schema_of(kind)))
        return blocks

    def restore(self, segments: Iterable[bytes], place: Origin) -> None:
        """Take over what `segments` of any number of old subtasks give the subtask at `place`."""
        parts: dict[tuple[str, str], list[tuple[Origin, GroupBlock]]] = {}
        for data in segments:
            origin = origin_of(data)
            for block in decode_segment(data, range(0)):
                parts.setdefault((block.kind, block.state), []).append((origin, block))
        for (kind, name), found in parts.items():
            found.sort(key=lambda part: part[0].subtask)
            if kind == BROADCAST:
                self.broadcast.restore(copy_of([block for _, block in found], place.subtask))
            elif kind in _GROUPS:
                self._restore_list(name, kind, found, place)

    def _restore_list(
        self, name: str, kind: str, found: list[tuple[Origin, GroupBlock]], place: Origin
    ) -> None:
        # A subtask that had finished left nothing behind, so a part may be missing.
        parts: list[list[Any]] = [[] for _ in range(found[0][0].parallelism)]
        for origin, block in found:
            parts[origin.subtask] = restored_entries(block.state, block.payload, block.schema)[1]
        if kind == UNION:
            elements = union(parts)
        else:
            elements = split(parts, place.parallelism)[place.subtask]
        self._lists[name] = _Declared(kind, type_of(found[-1][1].schema), elements)
