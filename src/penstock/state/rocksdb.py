"""The `rocksdb` backend: keyed state that is larger than memory.

Tables are in one RocksDB database per operator and subtask, each behind a cache of live objects
(`rocks_entries`). State objects, windows and reductions work on a table as they do on a dict.
Pending timers are live objects in memory as on the `hashmap` backend, because their order is.

Savepoints and deltas are those of the other backend, in blocks by state and key group: a delta is
written from the cache, and from a view of the database for what has left it; a savepoint from a
view, one key group after another. What deltas build upon are the files of the database, once it is
large enough (`database_files`).
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from penstock import kept
from penstock.common.clock import Clock, SystemClock
from penstock.common.settings import StateSettings
from penstock.common.spool import Spool
from penstock.state.backend import Captured
from penstock.state.capture import TableCapture, encode_block
from penstock.state.database_files import LinkedFiles, SavedDatabase
from penstock.state.declarations import Declarations, check_kind
from penstock.state.descriptors import StateDescriptor
from penstock.state.entries import restored_entries
from penstock.state.generations import Generations
from penstock.state.hashmap import HashMapBackend
from penstock.state.kinds import KeyContext
from penstock.state.rocks_blocks import table_blocks
from penstock.state.rocks_database import RocksDatabase, View
from penstock.state.rocks_entries import RocksEntries
from penstock.state.rocks_keys import end_of, place, table_of
from penstock.state.schema import schema_of, type_of
from penstock.state.segments import GroupBlock
from penstock.state.table import StateTable
from penstock.state.timers import KIND as TIMERS


class RocksDBBackend:
    """The keyed state of one operator in one subtask."""

    def __init__(
        self,
        key_context: KeyContext,
        max_parallelism: int,
        clock: Clock | None = None,
        settings: StateSettings | None = None,
    ) -> None:
        clock = clock or SystemClock()
        self._settings = settings or StateSettings()
        self._max_parallelism = max_parallelism
        self.database = RocksDatabase(self._settings)
        self._tables: dict[str, tuple[StateTable, RocksEntries]] = {}
        self._timers = HashMapBackend(key_context, max_parallelism, clock)
        self._declared = Declarations(key_context, clock, self.table)

    def get_state(self, descriptor: StateDescriptor) -> Any:
        return self._declared.bind(descriptor)

    def bound(self) -> dict[str, tuple[str, Any]]:
        return self._declared.by_name()

    def table(self, name: str, kind: str) -> StateTable:
        if kind == TIMERS:
            return self._timers.table(name, kind)
        if name not in self._tables:
            changes = Generations()
            number = len(self._tables)
            entries = RocksEntries(name, number, self.database, changes, self._max_parallelism)
            self._tables[name] = (StateTable(kind, entries, changes), entries)
            for _, each in self._tables.values():
                each.allow(self._settings.objects() // len(self._tables))
        table, _ = self._tables[name]
        check_kind(name, table, kind)
        return table

    def cut(self, checkpoint: int, full: bool, files: bool = False) -> Captured:
        # All generations end before anything is written, which may fail: none may be left out.
        for _, entries in self._tables.values():
            entries.end_generation(checkpoint)
        timers = self._timers.cut(checkpoint, full)
        parts: list[Callable[[], Iterable[GroupBlock]]] = [lambda: timers]
        if full:
            self._flush()
            if not (files and self.ships_files()):
                return Captured([*parts, *self._all_entries()])
            # Now: a state may be declared, or migrated, before these are gone through.
            described = list(self._empty_tables())
            return Captured([*parts, lambda: described], self._link(checkpoint))
        view, spool = self.database.view(), Spool()
        for name in self._tables:
            parts.extend(self._changes(name, view, spool))
        return Captured(parts)

    def whole(self) -> Captured:
        timers = self._timers.whole()
        self._flush()
        return Captured([lambda: timers, *self._all_entries()])

    def _all_entries(self) -> list[Callable[[], Iterable[GroupBlock]]]:
        view = self.database.view()
        return [self._everything(name, number, view) for number, name in enumerate(self._tables)]

    def _flush(self) -> None:
        for _, entries in self._tables.values():
            entries.flush()

    def ships_files(self) -> bool:
        if not self.database.is_made() or self.database.size() < self._settings.files_from:
            return False
        return all(self._declared.prune_in_snapshots(name) is None for name in self._tables)

    def _empty_tables(self) -> Iterable[GroupBlock]:
        """A block without entries for each table: which there are, in their order, and types."""
        for name, (table, _) in self._tables.items():
            kind = self._declared.type_of(name)
            payload = encode_block(name, kind, [], [])
            yield GroupBlock(name, table.kind, 0, [payload], schema_of(kind))

    def _link(self, checkpoint: int) -> LinkedFiles:
        folder = self.database.link(f"cut-{checkpoint}")
        states = [(name, table.kind) for name, (table, _) in self._tables.items()]
        spans = {
            name: tuple(states[table_of(first) : table_of(last) + 1])
            for name, (first, last) in self.database.spans().items()
        }
        names = sorted(os.listdir(folder))
        threads = self._settings.transfer_threads
        return LinkedFiles(folder, names, spans, self.database.entries_size(), threads)

    def _changes(
        self, name: str, view: View, spool: Spool
    ) -> list[Callable[[], Iterable[GroupBlock]]]:
        table, entries = self._tables[name]
        keys, values, removed, elsewhere = entries.changed()
        type_info = self._declared.type_of(name)

        def capture(keys: list[Any], values: list[Any], removed: list[Any]) -> TableCapture:
            most = self._max_parallelism
            return TableCapture.of(name, table.kind, type_info, most, keys, values, removed, spool)

        def looked_up() -> Iterable[GroupBlock]:
            found, values, removed = [], [], []
            places = sorted((entries.encode(key), key) for key in elsewhere)
            for (_, key), data in zip(places, view.find([p for p, _ in places]), strict=True):
                if data is None:
                    removed.append(key)
                else:
                    found.append(key)
                    values.append(kept.loads(data)[1])
            return capture(found, values, removed).blocks()

        cached = capture(keys, values, removed)
        return [cached.blocks, looked_up] if elsewhere else [cached.blocks]

    def _everything(self, name: str, number: int, view: View) -> Callable[[], Iterator[GroupBlock]]:
        table, _ = self._tables[name]
        type_info = self._declared.type_of(name)
        prune = self._declared.prune_in_snapshots(name)
        groups = range(self._max_parallelism)
        return lambda: table_blocks(view, number, groups, name, table.kind, type_info, prune)

    def confirm(self, checkpoint: int) -> None:
        self._timers.confirm(checkpoint)
        for table, _ in self._tables.values():
            table.changes.confirm(checkpoint)

    def moved(self) -> bool:
        return self._timers.moved() or any(t.changes.moved() for t, _ in self._tables.values())

    def restore(self, blocks: Iterable[GroupBlock]) -> None:
        for block in blocks:
            if block.kind == TIMERS:
                self._timers.restore([block])
                continue
            table = self.table(block.state, block.kind)
            migrate = self._declared.restored(block.state, type_of(block.schema), table)
            keys, values, removed = restored_entries(block.state, block.payload, block.schema)
            if migrate is not None:
                values = list(map(migrate, values))
            self._tables[block.state][1].restore(keys, values, removed)

    def restore_database(self, saved: SavedDatabase, groups: range) -> bool:
        # If something of another subtask came before, its tables may have other places and types.
        # And of files that are mostly others' the rest would be stored again, by everyone.
        if self._tables or 2 * len(groups) < len(saved.groups):
            self.restore(saved.blocks(groups, local_dir=self._settings.local_dir))
            return False
        self.database.adopt(saved.unpack)
        view = self.database.view()
        for number, (state, kind, schema) in enumerate(saved.tables):
            table = self.table(state, kind)
            # Of a table without entries nothing is left, its type neither.
            if any(view.between(place(number, 0), end_of(number))):
                self._declared.restored(state, type_of(schema), table)
            self.database.delete(place(number, 0), place(number, groups.start))
            self.database.delete(place(number, groups.stop), end_of(number))
        return True

    def has_migrated(self) -> bool:
        return self._declared.migrated

    def gauges(self) -> dict[str, Callable[[], float]]:
        return self.database.gauges()

    def close(self) -> None:
        self.database.close()

    def forget(self) -> None:
        self._timers.forget()
