"""Which states an operator has declared: the same on every backend.

A declaration binds a name to a kind and a type for as long as the operator runs. What was restored
under that name must be of the same kind, and of a type that can become the declared one: then its
values are migrated when it is declared.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from penstock.common.clock import Clock
from penstock.common.typeinfo import TypeInformation
from penstock.errors import StateError
from penstock.state.checked import checked
from penstock.state.descriptors import StateDescriptor
from penstock.state.kinds import HASHMAP_STATES, KeyContext
from penstock.state.migration import (
    Migrate,
    NoMigration,
    migrate_table,
    migration,
    migration_of_state,
)
from penstock.state.schema import PICKLED
from penstock.state.sweep import Prune
from penstock.state.table import StateTable
from penstock.state.ttl import EXPIRING_STATES


class Declarations:
    """The states of one operator in one subtask, and the types of their values."""

    def __init__(
        self, key_context: KeyContext, clock: Clock, table: Callable[[str, str], StateTable]
    ) -> None:
        """`table` gives the table of a name and kind."""
        self._key_context = key_context
        self._clock = clock
        self._table = table
        self._types: dict[str, TypeInformation] = {}
        self._bound: dict[str, tuple[StateDescriptor, Any]] = {}
        self.migrated = False
        """Whether values that were restored have been replaced."""

    def bind(self, descriptor: StateDescriptor) -> Any:
        """The state object for `descriptor`, the same for the same; else StateError."""
        name = descriptor.name
        bound = self._bound.get(name)
        if bound is not None:
            if bound[0].describe() != descriptor.describe():
                raise StateError(
                    f"state {name!r} is declared twice: as {bound[0].describe()} and as "
                    f"{descriptor.describe()}"
                )
            return bound[1]
        table = self._table(name, descriptor.stored_kind())
        self._declare(name, descriptor.stored_type(), table)
        if descriptor.ttl is None:
            kind = checked(HASHMAP_STATES[descriptor.kind], descriptor)
            state = kind(self._key_context, table, descriptor)
        else:
            kind = checked(EXPIRING_STATES[descriptor.kind], descriptor)
            state = kind(self._key_context, table, descriptor, self._clock)
        self._bound[name] = (descriptor, state)
        return state

    def _declare(self, name: str, declared: TypeInformation, table: StateTable) -> None:
        migrate = migration_of_state(name, self._types.get(name, declared), declared)
        if migrate is not None:
            migrate_table(table, migrate)
            self.migrated = True
        self._types[name] = declared

    def restored(self, name: str, saved: TypeInformation, table: StateTable) -> Migrate | None:
        """The values that come next were saved with this type; what must be done to them.

        What has come already is brought to the same type. The types differ where a function asked
        for its state, and so migrated it, in some subtasks only.
        """
        known = self._types.setdefault(name, saved)
        try:
            migrate = migration(known, saved)
        except NoMigration:
            return migration_of_state(name, saved, known)
        if migrate is not None:
            migrate_table(table, migrate)
        self._types[name] = saved
        return None

    def type_of(self, name: str) -> TypeInformation:
        """The type to write the values of `name` with."""
        return self._types.get(name, PICKLED)

    def prune_in_snapshots(self, name: str) -> Prune | None:
        """What takes expired entries out of a full snapshot; None where they stay in."""
        if name not in self._bound:
            return None
        descriptor, state = self._bound[name]
        if descriptor.ttl is None or not state.pruned_in_snapshots:
            return None
        prune: Prune = state.prune
        return prune

    def by_name(self) -> dict[str, tuple[str, Any]]:
        """Kind and state object of every state that was declared."""
        return {name: (d.kind, state) for name, (d, state) in self._bound.items()}


def check_kind(name: str, table: StateTable, kind: str) -> None:
    """StateError if what is there under `name` is of another kind."""
    if table.kind != kind:
        raise StateError(
            f"state {name!r} was saved as {table.kind} state and is now declared as {kind} "
            "state; give it a new name or declare it as it was"
        )
