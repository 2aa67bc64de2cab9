"""The `hashmap` backend: live Python objects in dicts.

One table per state maps keys to values of the subtask's key groups. The state objects that user
functions hold work on the table directly, at the cost of a dict access; which keys changed is
noted beside it, and only those are written at a checkpoint, in their key groups.

A value that can change must be written while the loop stands still. Values that cannot are only
*captured* then, as a list of references, and written off the loop.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from penstock.common.clock import Clock, SystemClock
from penstock.common.keys import key_group
from penstock.common.typeinfo import TypeInformation
from penstock.state.backend import Captured
from penstock.state.declarations import Declarations, check_kind
from penstock.state.descriptors import StateDescriptor
from penstock.state.entries import decode_entries, encode_entries, unwritable
from penstock.state.generations import Generations
from penstock.state.kinds import ATOMIC, KeyContext
from penstock.state.schema import schema_of, type_of
from penstock.state.segments import GroupBlock
from penstock.state.table import StateTable


class HashMapBackend:
    """The keyed state of one operator in one subtask."""

    def __init__(
        self, key_context: KeyContext, max_parallelism: int, clock: Clock | None = None
    ) -> None:
        self._max_parallelism = max_parallelism
        self._tables: dict[str, StateTable] = {}
        self._declared = Declarations(key_context, clock or SystemClock(), self.table)

    def get_state(self, descriptor: StateDescriptor) -> Any:
        return self._declared.bind(descriptor)

    def bound(self) -> dict[str, tuple[str, Any]]:
        return self._declared.by_name()

    def table(self, name: str, kind: str) -> StateTable:
        """The table `name`, made if absent; StateError if it is there as another kind."""
        table = self._tables.get(name)
        if table is None:
            table = self._tables[name] = StateTable(kind, {}, Generations())
        check_kind(name, table, kind)
        return table

    def cut(self, checkpoint: int, full: bool) -> Captured:
        # All generations end before anything is written, which may fail: none may be left out.
        for table in self._tables.values():
            table.changes.end(checkpoint)
        captures = [self._capture(name, table, full) for name, table in self._tables.items()]
        return Captured([capture.blocks for capture in captures])

    def _capture(self, name: str, table: StateTable, full: bool) -> _TableCapture:
        entries = table.entries
        removed: list[Any] = []
        if full:
            keys, values = self._everything(name, entries)
        else:
            changed = table.changes.changed()
            keys = [key for key in changed if key in entries]
            values = [entries[key] for key in keys]
            if len(keys) < len(changed):
                removed = [key for key in changed if key not in entries]
        kind = self._declared.type_of(name)
        capture = _TableCapture(
            name, table.kind, kind, self._max_parallelism, keys, values, removed
        )
        if not _frozen(kind, values):
            capture.write()
        return capture

    def _everything(self, name: str, entries: dict[Any, Any]) -> tuple[list[Any], list[Any]]:
        prune = self._declared.prune_in_snapshots(name)
        if prune is None:
            return list(entries), list(entries.values())
        left = {key: prune(stored) for key, stored in entries.items()}
        left = {key: stored for key, stored in left.items() if stored is not None}
        return list(left), list(left.values())

    def confirm(self, checkpoint: int) -> None:
        for table in self._tables.values():
            table.changes.confirm(checkpoint)

    def restore(self, blocks: Iterable[GroupBlock]) -> None:
        for block in blocks:
            entries = self.table(block.state, block.kind).entries
            self._declared.restored(block.state, type_of(block.schema))
            keys, values, removed = decode_entries(block.payload)
            entries.update(zip(keys, values, strict=True))
            for key in removed:
                entries.pop(key, None)

    def close(self) -> None:
        """Nothing is held outside of this object."""


def _frozen(kind: TypeInformation, values: list[Any]) -> bool:
    """Whether none of the values can change any more."""
    types = set(map(type, values))
    return types <= ATOMIC or (kind.is_immutable() and types <= ATOMIC | {tuple})


@dataclass
class _TableCapture:
    """What of one table goes into a checkpoint: references until `write`, then blocks."""

    name: str
    kind: str
    type_info: TypeInformation
    max_parallelism: int
    keys: list[Any]
    values: list[Any]
    removed: list[Any]
    written: list[GroupBlock] | None = None

    def blocks(self) -> list[GroupBlock]:
        if self.written is None:
            self.write()
        assert self.written is not None
        return self.written

    def write(self) -> None:
        schema = schema_of(self.type_info)
        groups: dict[int, tuple[list[Any], list[Any], list[Any]]] = {}
        most = self.max_parallelism
        for key, value in zip(self.keys, self.values, strict=True):
            keys, values, _ = groups.setdefault(key_group(key, most), ([], [], []))
            keys.append(key)
            values.append(value)
        for key in self.removed:
            groups.setdefault(key_group(key, most), ([], [], []))[2].append(key)
        self.keys = self.values = self.removed = []
        self.written = [
            GroupBlock(self.name, self.kind, group, self._payload(*content), schema)
            for group, content in sorted(groups.items(), key=lambda item: item[0])
        ]

    def _payload(self, keys: list[Any], values: list[Any], removed: list[Any]) -> bytes:
        try:
            return encode_entries(self.type_info, keys, values, removed)
        except Exception as error:
            raise unwritable(self.name, self.type_info, keys, values, error) from error
