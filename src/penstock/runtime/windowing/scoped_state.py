"""State of one key and one window: what triggers and process window functions keep.

All of it is in one table, which maps a key to what its windows hold. The states that are handed
out are the same that functions have elsewhere; they look into the table through a view that knows
the window in question.
"""

from __future__ import annotations

from typing import Any

from penstock.common.accumulators import Accumulator
from penstock.errors import ProgramError, StateError
from penstock.metrics import MetricGroup
from penstock.runtime.functions import KeyedStateStore, RuntimeContext
from penstock.runtime.windowing.windows import Window
from penstock.state.checked import checked
from penstock.state.descriptors import StateDescriptor, refuse_ttl
from penstock.state.kinds import HASHMAP_STATES
from penstock.state.table import StateTable


class Scope:
    """Which key and which window are in question."""

    __slots__ = ("key",)

    def __init__(self) -> None:
        self.key: tuple[Any, Any] = (None, None)


class _View:
    """The values of one state: of a key and window, in a table that is by key."""

    __slots__ = ("_changed", "_entries", "_name", "current")

    def __init__(self, table: StateTable, name: str) -> None:
        self._entries = table.entries
        self._changed = table.changes.current
        self._name = name
        # A view is also what the state notes its changes in.
        self.current = self

    def add(self, scope: tuple[Any, Any]) -> None:
        self._changed.add(scope[0])

    def get(self, scope: tuple[Any, Any]) -> Any:
        values = self._entries.get(scope[0])
        return None if values is None else values.get((scope[1], self._name))

    def __contains__(self, scope: tuple[Any, Any]) -> bool:
        return (scope[1], self._name) in (self._entries.get(scope[0]) or ())

    def __getitem__(self, scope: tuple[Any, Any]) -> Any:
        return self._entries[scope[0]][scope[1], self._name]

    def __setitem__(self, scope: tuple[Any, Any], value: Any) -> None:
        values = self._entries.get(scope[0])
        if values is None:
            values = self._entries[scope[0]] = {}
        values[scope[1], self._name] = value

    def __delitem__(self, scope: tuple[Any, Any]) -> None:
        values = self._entries[scope[0]]
        del values[scope[1], self._name]
        if not values:
            del self._entries[scope[0]]


class ScopedStates:
    """The states that one owner (the trigger, or the function) keeps per key and window."""

    def __init__(self, owner: str, table: StateTable, scope: Scope) -> None:
        self._owner = owner
        self._table = table
        self._scope = scope
        self._bound: dict[str, tuple[StateDescriptor, _View, Any]] = {}

    def get(self, descriptor: StateDescriptor) -> Any:
        """The state of the window in question; the same object for every window."""
        bound = self._bound.get(descriptor.name)
        if bound is None:
            refuse_ttl(descriptor, "the state of a window, which goes with it,")
            view = _View(self._table, f"{self._owner}:{descriptor.name}")
            table: Any = StateTable(descriptor.kind, view, view)  # type: ignore[arg-type]
            scope: Any = self._scope
            kind = checked(HASHMAP_STATES[descriptor.kind], descriptor)
            state = kind(scope, table, descriptor)
            bound = self._bound[descriptor.name] = (descriptor, view, state)
        elif bound[0].describe() != descriptor.describe():
            raise StateError(
                f"state {descriptor.name!r} of a window is declared twice: as "
                f"{bound[0].describe()} and as {descriptor.describe()}"
            )
        return bound[2]

    def merge(self, descriptor: StateDescriptor, windows: list[Window], target: Window) -> None:
        """Bring the state of `windows` together as that of `target`."""
        self.get(descriptor)
        _, view, _ = self._bound[descriptor.name]
        key = self._scope.key[0]
        merged: Any = None
        for window in windows:
            value = view.get((key, window))
            if value is None:
                continue
            merged = value if merged is None else _merged(descriptor, merged, value)
            del view[key, window]
        if merged is not None:
            view[key, target] = merged
        view.add((key, target))


def _merged(descriptor: StateDescriptor, one: Any, other: Any) -> Any:
    if descriptor.kind == "reducing":
        return descriptor.reduce(one, other)  # type: ignore[attr-defined]
    if descriptor.kind == "aggregating":
        return descriptor.function.merge(one, other)  # type: ignore[attr-defined]
    if descriptor.kind == "list":
        return [*one, *other]
    raise StateError(
        f"state {descriptor.name!r} of two windows cannot be merged: it is {descriptor.kind} "
        "state; list, reducing and aggregating state can"
    )


class WindowStateStore(KeyedStateStore):
    """`window_state()` of a process window function."""

    def __init__(self, states: ScopedStates, runtime_context: RuntimeContext) -> None:
        self._states = states
        self._runtime_context = runtime_context

    def get_metrics_group(self) -> MetricGroup:
        return self._runtime_context.get_metrics_group()

    def add_accumulator(self, name: str, accumulator: Accumulator[Any, Any]) -> None:
        self._runtime_context.add_accumulator(name, accumulator)

    def get_accumulator(self, name: str) -> Accumulator[Any, Any]:
        return self._runtime_context.get_accumulator(name)

    def _state(self, state_descriptor: StateDescriptor) -> Any:
        return self._states.get(state_descriptor)

    get_state = _state
    get_list_state = _state
    get_map_state = _state
    get_reducing_state = _state
    get_aggregating_state = _state


class NoWindowStateStore(WindowStateStore):
    """The same for windows that merge: what each of them kept could not be."""

    def _state(self, state_descriptor: StateDescriptor) -> Any:
        raise ProgramError(
            f"state {state_descriptor.name!r}: windows that merge, such as sessions, have no "
            "window_state(); use global_state()"
        )

    get_state = _state
    get_list_state = _state
    get_map_state = _state
    get_reducing_state = _state
    get_aggregating_state = _state
