"""The `hashmap` backend: live Python objects in dicts.

One table per state maps keys to values of the subtask's key groups. The state objects that user
functions hold work on the table directly, at the cost of a dict access; which keys changed is
noted beside it, and only those are written at a checkpoint, in their key groups.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from penstock.common.clock import Clock, SystemClock
from penstock.common.slices import in_slices
from penstock.common.spool import Spool
from penstock.state.backend import Captured
from penstock.state.capture import TableCapture
from penstock.state.database_files import SavedDatabase
from penstock.state.declarations import Declarations, check_kind
from penstock.state.descriptors import StateDescriptor
from penstock.state.entries import restored_entries
from penstock.state.generations import Generations
from penstock.state.kinds import KeyContext
from penstock.state.schema import type_of
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

    def cut(self, checkpoint: int, full: bool, files: bool = False) -> Captured:
        # All generations end before anything is written, which may fail: none may be left out.
        for table in self._tables.values():
            table.changes.end(checkpoint)
        return self._captured(full)

    def whole(self) -> Captured:
        return self._captured(full=True)

    def _captured(self, full: bool) -> Captured:
        spool = Spool()
        captures = [self._capture(*table, full, spool) for table in self._tables.items()]
        return Captured([capture.blocks for capture in captures])

    def _capture(self, name: str, table: StateTable, full: bool, spool: Spool) -> TableCapture:
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
        most = self._max_parallelism
        return TableCapture.of(name, table.kind, kind, most, keys, values, removed, spool)

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

    def moved(self) -> bool:
        return any(table.changes.moved() for table in self._tables.values())

    def restore(self, blocks: Iterable[GroupBlock]) -> None:
        for block in blocks:
            table = self.table(block.state, block.kind)
            migrate = self._declared.restored(block.state, type_of(block.schema), table)
            keys, values, removed = restored_entries(block.state, block.payload, block.schema)
            if migrate is not None:
                values = list(map(migrate, values))
            for some in in_slices(zip(keys, values, strict=True)):
                table.entries.update(some)
            for key in removed:
                table.entries.pop(key, None)

    def ships_files(self) -> bool:
        return False

    def restore_database(self, saved: SavedDatabase, groups: range) -> bool:
        self.restore(saved.blocks(groups))
        return False

    def has_migrated(self) -> bool:
        return self._declared.migrated

    def gauges(self) -> dict[str, Callable[[], float]]:
        """Nothing: a dict knows its length and no more."""
        return {}

    def close(self) -> None:
        """Nothing is held outside of this object."""

    def forget(self) -> None:
        # By hand: nobody knows when the collector would come to it, and then it would all be at
        # once, with every other thread waiting.
        for table in self._tables.values():
            while table.entries:
                table.entries.popitem()
