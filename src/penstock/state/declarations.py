"""Which states an operator has declared: the same on every backend.

A declaration binds a name to a kind and a type for as long as the operator runs, and must agree
with what was restored under that name.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from penstock.common.clock import Clock
from penstock.common.typeinfo import TypeInformation
from penstock.errors import StateError
from penstock.state.descriptors import StateDescriptor
from penstock.state.kinds import HASHMAP_STATES, KeyContext
from penstock.state.schema import PICKLED, needs_pickle, schema_of
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
        self._declare(name, descriptor.stored_type())
        if descriptor.ttl is None:
            state = HASHMAP_STATES[descriptor.kind](self._key_context, table, descriptor)
        else:
            state = EXPIRING_STATES[descriptor.kind](
                self._key_context, table, descriptor, self._clock
            )
        self._bound[name] = (descriptor, state)
        return state

    def _declare(self, name: str, declared: TypeInformation) -> None:
        saved = self._types.get(name, declared)
        # What was pickled may be anything; whether it fits is seen when it is written.
        undeclared = needs_pickle(schema_of(saved)) or needs_pickle(schema_of(declared))
        if saved != declared and not undeclared:
            raise StateError(
                f"state {name!r} was saved with the type {saved} and is now declared with "
                f"{declared}; give it a new name or declare it as it was"
            )
        self._types[name] = declared

    def restored(self, name: str, type_info: TypeInformation) -> None:
        """The values of `name` were saved with this type."""
        self._types[name] = type_info

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
