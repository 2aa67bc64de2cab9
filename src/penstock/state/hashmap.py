"""The `hashmap` backend: live Python objects in dicts.

One table per state maps keys to values of the subtask's key groups. The state objects that user
functions hold work on the table directly, at the cost of a dict access; which keys changed is
noted beside it, and only those are written at a checkpoint, in their key groups.
"""

from __future__ import annotations

import pickle
from collections.abc import Iterable
from typing import Any

from penstock.common.keys import key_group
from penstock.errors import StateError
from penstock.state.descriptors import StateDescriptor
from penstock.state.generations import Generations
from penstock.state.kinds import HASHMAP_STATES, KeyContext
from penstock.state.segments import GroupBlock
from penstock.state.table import StateTable


class HashMapBackend:
    """The keyed state of one operator in one subtask."""

    def __init__(self, key_context: KeyContext, max_parallelism: int) -> None:
        self._key_context = key_context
        self._max_parallelism = max_parallelism
        self._tables: dict[str, StateTable] = {}
        self._bound: dict[str, tuple[StateDescriptor, Any]] = {}

    def get_state(self, descriptor: StateDescriptor) -> Any:
        """The state object for `descriptor`; the same one for the same descriptor."""
        name, kind = descriptor.name, descriptor.kind
        bound = self._bound.get(name)
        if bound is not None:
            if bound[0].describe() != descriptor.describe():
                raise StateError(
                    f"state {name!r} is declared twice: as {bound[0].describe()} and as "
                    f"{descriptor.describe()}"
                )
            return bound[1]
        state = HASHMAP_STATES[kind](self._key_context, self.table(name, kind), descriptor)
        self._bound[name] = (descriptor, state)
        return state

    def bound(self) -> dict[str, tuple[str, Any]]:
        """Kind and state object of every state that was declared, by name."""
        return {name: (d.kind, state) for name, (d, state) in self._bound.items()}

    def table(self, name: str, kind: str) -> StateTable:
        """The table `name`, made if absent; StateError if it is there as another kind."""
        table = self._tables.get(name)
        if table is None:
            table = self._tables[name] = StateTable(kind, {}, Generations())
        elif table.kind != kind:
            raise StateError(
                f"state {name!r} was saved as {table.kind} state and is now declared as {kind} "
                "state; give it a new name or declare it as it was"
            )
        return table

    def cut(self, checkpoint: int, full: bool) -> list[GroupBlock]:
        """End the generation and write what changed since the last confirmed checkpoint.

        This is the synchronous part: the values are live and change again right after it.
        """
        blocks = []
        for name, table in self._tables.items():
            changed: Iterable[Any] = table.changes.cut(checkpoint)
            if full:
                changed = table.entries.keys()
            blocks.extend(self._blocks(name, table, changed))
        return blocks

    def _blocks(self, name: str, table: StateTable, keys: Iterable[Any]) -> list[GroupBlock]:
        groups: dict[int, tuple[dict[Any, Any], list[Any]]] = {}
        entries = table.entries
        for key in keys:
            group = key_group(key, self._max_parallelism)
            kept, removed = groups.setdefault(group, ({}, []))
            if key in entries:
                kept[key] = entries[key]
            else:
                removed.append(key)
        try:
            return [
                GroupBlock(name, table.kind, group, pickle.dumps(content, protocol=5))
                for group, content in sorted(groups.items(), key=lambda item: item[0])
            ]
        except Exception as error:
            raise StateError(f"state {name!r} cannot be written: {error}") from error

    def confirm(self, checkpoint: int) -> None:
        for table in self._tables.values():
            table.changes.confirm(checkpoint)

    def restore(self, blocks: Iterable[GroupBlock]) -> None:
        """Apply blocks, oldest first. Restored entries are settled: no delta repeats them."""
        for block in blocks:
            entries = self.table(block.state, block.kind).entries
            kept, removed = pickle.loads(block.payload)
            entries.update(kept)
            for key in removed:
                entries.pop(key, None)
