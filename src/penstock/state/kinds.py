"""The five kinds of keyed state, as user functions see them, on live objects.

Reading a mutable value marks its key as changed, because the reader may alter it in place: a
change that a later read sees is then never missing from the checkpoint.
"""

from __future__ import annotations

import datetime
import decimal
from collections.abc import Callable, Iterable, Iterator
from typing import Any, TypeVar

from penstock.errors import StateError
from penstock.state.descriptors import (
    AggregatingStateDescriptor,
    ReducingStateDescriptor,
    StateDescriptor,
)
from penstock.state.interfaces import (
    AggregatingState,
    ListState,
    MapState,
    ReducingState,
    ValueState,
)
from penstock.state.table import StateTable

T = TypeVar("T")
K = TypeVar("K")
V = TypeVar("V")

ATOMIC = frozenset(
    {str, int, float, bool, bytes, type(None), complex}
    | {datetime.datetime, datetime.date, datetime.time, datetime.timedelta, decimal.Decimal}
)
"""Types whose values cannot change."""


class _NoKey:
    """In the place of a key where there is none: looking something up under it is an error."""

    def __hash__(self) -> int:
        raise StateError(
            "there is no current key here: keyed state and timers can be used while a record of "
            "the keyed stream or a timer is processed, not in open(), close() or "
            "process_broadcast_element()"
        )


NO_KEY = _NoKey()


class KeyContext:
    """The key that the operator is working on."""

    __slots__ = ("key", "steps")

    def __init__(self) -> None:
        self.steps: list[Callable[[], None]] = []
        self.key: Any = NO_KEY

    def on_every_key(self, step: Callable[[], None]) -> None:
        """Call `step` from now on whenever a key is set, that is for every record."""
        self.steps.append(step)
        self.__class__ = _SteppingKeyContext


class _SteppingKeyContext(KeyContext):
    """The same with something to do for every key; apart, so that others pay nothing for it."""

    __slots__ = ()

    def __setattr__(self, name: str, value: Any) -> None:
        super().__setattr__(name, value)
        for step in self.steps:
            step()


class _HashMapState:
    __slots__ = ("_changed", "_entries", "_key_context")

    def __init__(
        self, key_context: KeyContext, table: StateTable, descriptor: StateDescriptor
    ) -> None:
        self._key_context = key_context
        self._entries = table.entries
        self._changed = table.changes.current

    def clear(self) -> None:
        key = self._key_context.key
        if key in self._entries:
            del self._entries[key]
            self._changed.add(key)

    def _put(self, value: Any) -> None:
        key = self._key_context.key
        self._entries[key] = value
        self._changed.add(key)

    def _read(self) -> Any:
        key = self._key_context.key
        value = self._entries.get(key)
        if value.__class__ not in ATOMIC:
            self._changed.add(key)
        return value


class HashMapValueState(_HashMapState, ValueState[T]):
    __slots__ = ()

    def value(self) -> T | None:
        # `_read`, spelled out: this is the hottest call there is.
        key = self._key_context.key
        value = self._entries.get(key)
        if value.__class__ not in ATOMIC:
            self._changed.add(key)
        return value

    def update(self, value: T | None) -> None:
        if value is None:
            self.clear()
            return
        key = self._key_context.key
        self._entries[key] = value
        self._changed.add(key)


class HashMapListState(_HashMapState, ListState[T]):
    __slots__ = ()

    def get(self) -> Iterable[T]:
        return self._read() or []

    def add(self, value: T) -> None:
        stored = self._read()
        if stored is None:
            self._put([value])
        else:
            stored.append(value)

    def update(self, values: list[T]) -> None:
        if values:
            self._put(list(values))
        else:
            self.clear()

    def add_all(self, values: list[T]) -> None:
        for value in values:
            self.add(value)


class HashMapMapState(_HashMapState, MapState[K, V]):
    __slots__ = ()

    def _map(self) -> dict[K, V]:
        return self._read() or {}

    def get(self, key: K) -> V | None:
        return self._map().get(key)

    def put(self, key: K, value: V) -> None:
        stored = self._read()
        if stored is None:
            self._put({key: value})
        else:
            stored[key] = value

    def put_all(self, dict_value: dict[K, V]) -> None:
        for key, value in dict_value.items():
            self.put(key, value)

    def remove(self, key: K) -> None:
        stored = self._map()
        stored.pop(key, None)
        if not stored:
            self.clear()

    def contains(self, key: K) -> bool:
        return key in self._map()

    def items(self) -> Iterable[tuple[K, V]]:
        return self._map().items()

    def keys(self) -> Iterable[K]:
        return self._map().keys()

    def values(self) -> Iterable[V]:
        return self._map().values()

    def is_empty(self) -> bool:
        return not self._map()

    def __iter__(self) -> Iterator[K]:
        return iter(self._map())


class HashMapReducingState(_HashMapState, ReducingState[T]):
    __slots__ = ("_reduce",)

    def __init__(
        self, key_context: KeyContext, table: StateTable, descriptor: ReducingStateDescriptor
    ) -> None:
        super().__init__(key_context, table, descriptor)
        self._reduce = descriptor.reduce

    def get(self) -> T | None:
        return self._read()  # type: ignore[no-any-return]

    def add(self, value: T) -> None:
        stored = self._entries.get(self._key_context.key)
        self._put(value if stored is None else self._reduce(stored, value))


class HashMapAggregatingState(_HashMapState, AggregatingState[T, V]):
    __slots__ = ("_function",)

    def __init__(
        self, key_context: KeyContext, table: StateTable, descriptor: AggregatingStateDescriptor
    ) -> None:
        super().__init__(key_context, table, descriptor)
        self._function = descriptor.function

    def get(self) -> V | None:
        stored = self._read()
        return None if stored is None else self._function.get_result(stored)

    def add(self, value: T) -> None:
        stored = self._entries.get(self._key_context.key)
        if stored is None:
            stored = self._function.create_accumulator()
        self._put(self._function.add(value, stored))


HASHMAP_STATES: dict[str, type] = {
    "value": HashMapValueState,
    "list": HashMapListState,
    "map": HashMapMapState,
    "reducing": HashMapReducingState,
    "aggregating": HashMapAggregatingState,
}
