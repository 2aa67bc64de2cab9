"""The five kinds of keyed state with a time to live.

Beside a value is the time of its last update, in milliseconds; a list has one for each element and
a map one for each entry. An entry has expired when its time to live has passed since. What has
expired is removed when it is come across: by a read, by a step of the sweep, or when a full
snapshot is written.

The time of the update is stored, not that of the end, so a program may come back with another time
to live and it holds for what is already there.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator
from typing import Any, TypeVar

from penstock.common.clock import Clock
from penstock.state.descriptors import StateDescriptor
from penstock.state.interfaces import (
    AggregatingState,
    ListState,
    MapState,
    ReducingState,
    ValueState,
)
from penstock.state.kinds import ATOMIC, KeyContext
from penstock.state.sweep import Sweep
from penstock.state.table import StateTable
from penstock.state.ttl_config import StateTtlConfig

T = TypeVar("T")
K = TypeVar("K")
V = TypeVar("V")

_ABSENT: Any = object()


def _nothing() -> None:
    """The step of a state that is not swept."""


class _ExpiringState(ABC):
    """What all kinds have in common; the stored form is up to them."""

    def __init__(
        self, key_context: KeyContext, table: StateTable, descriptor: StateDescriptor, clock: Clock
    ) -> None:
        config = descriptor.ttl
        assert config is not None, "states without a time to live are of other classes"
        self._key_context = key_context
        self._entries = table.entries
        self._changed = table.changes.current
        self._now = clock.now_ms
        self._ttl = config.milliseconds()
        self._on_read = config.get_update_type() is StateTtlConfig.UpdateType.OnReadAndWrite
        self._returns_expired = (
            config.get_state_visibility()
            is StateTtlConfig.StateVisibility.ReturnExpiredIfNotCleanedUp
        )
        cleanup = config.get_cleanup_strategies()
        self.pruned_in_snapshots = cleanup.in_full_snapshot()
        """Whether full snapshots leave out what has expired."""
        self._step: Callable[[], None] = _nothing
        steps = cleanup.get_incremental_cleanup_strategy()
        if steps is not None:
            self._step = Sweep(table, self.prune, steps.get_cleanup_size()).step
            if steps.run_cleanup_for_every_record():
                key_context.on_every_key(self._step)

    @abstractmethod
    def prune(self, stored: Any) -> Any:
        """What is left of a stored value now: itself if nothing has expired, None if all has."""

    def clear(self) -> None:
        self._step()
        self._drop()

    def _drop(self) -> None:
        key = self._key_context.key
        if key in self._entries:
            del self._entries[key]
            self._changed.add(key)

    def _put(self, stored: Any) -> None:
        key = self._key_context.key
        self._entries[key] = stored
        self._changed.add(key)


class _ExpiringSingle(_ExpiringState):
    """One value, stored as (value, time)."""

    def prune(self, stored: Any) -> Any:
        return stored if stored[1] + self._ttl > self._now() else None

    def _read(self) -> Any:
        self._step()
        key = self._key_context.key
        stored = self._entries.get(key)
        if stored is None:
            return None
        value, updated = stored
        now = self._now()
        if updated + self._ttl <= now:
            self._drop()
            return value if self._returns_expired else None
        if self._on_read:
            self._put((value, now))
        elif value.__class__ not in ATOMIC:
            self._changed.add(key)
        return value

    def _to_add_to(self) -> Any:
        """What an added value is combined with, None if there is nothing."""
        self._step()
        stored = self._entries.get(self._key_context.key)
        if stored is None:
            return None
        expired = stored[1] + self._ttl <= self._now()
        return None if expired and not self._returns_expired else stored[0]


class ExpiringValueState(_ExpiringSingle, ValueState[T]):
    def value(self) -> T | None:
        return self._read()  # type: ignore[no-any-return]

    def update(self, value: T | None) -> None:
        if value is None:
            self.clear()
            return
        self._step()
        self._put((value, self._now()))


class ExpiringReducingState(_ExpiringSingle, ReducingState[T]):
    def __init__(self, *parts: Any) -> None:
        super().__init__(*parts)
        self._reduce = parts[2].reduce

    def get(self) -> T | None:
        return self._read()  # type: ignore[no-any-return]

    def add(self, value: T) -> None:
        stored = self._to_add_to()
        reduced = value if stored is None else self._reduce(stored, value)
        self._put((reduced, self._now()))


class ExpiringAggregatingState(_ExpiringSingle, AggregatingState[T, V]):
    def __init__(self, *parts: Any) -> None:
        super().__init__(*parts)
        self._function = parts[2].function

    def get(self) -> V | None:
        stored = self._read()
        return None if stored is None else self._function.get_result(stored)

    def add(self, value: T) -> None:
        stored = self._to_add_to()
        if stored is None:
            stored = self._function.create_accumulator()
        self._put((self._function.add(value, stored), self._now()))


class ExpiringListState(_ExpiringState, ListState[T]):
    """Stored as a list of (element, time)."""

    def prune(self, stored: Any) -> Any:
        oldest = self._now() - self._ttl
        left = [pair for pair in stored if pair[1] > oldest]
        return (stored if len(left) == len(stored) else left) or None

    def get(self) -> Iterable[T]:
        self._step()
        key = self._key_context.key
        stored = self._entries.get(key)
        if stored is None:
            return []
        left = self.prune(stored)
        if left is None:
            self._drop()
        elif self._on_read:
            now = self._now()
            self._put([(element, now) for element, _ in left])
        elif left is not stored:
            self._put(left)
        elif any(element.__class__ not in ATOMIC for element, _ in left):
            self._changed.add(key)
        return [element for element, _ in (stored if self._returns_expired else left or ())]

    def add(self, value: T) -> None:
        self.add_all([value])

    def add_all(self, values: list[T]) -> None:
        self._step()
        if not values:
            return
        now = self._now()
        key = self._key_context.key
        stored = self._entries.get(key)
        added = [(value, now) for value in values]
        if stored is None:
            self._put(added)
        else:
            stored += added
            self._changed.add(key)

    def update(self, values: list[T]) -> None:
        self.clear()
        self.add_all(list(values))


class ExpiringMapState(_ExpiringState, MapState[K, V]):
    """Stored as a dict of (value, time)."""

    def prune(self, stored: Any) -> Any:
        oldest = self._now() - self._ttl
        left = {key: pair for key, pair in stored.items() if pair[1] > oldest}
        return (stored if len(left) == len(stored) else left) or None

    def _one(self, key: K) -> Any:
        """The value under `key` in the map of the current key, _ABSENT if there is none."""
        self._step()
        stored = self._entries.get(self._key_context.key)
        pair = None if stored is None else stored.get(key)
        if stored is None or pair is None:
            return _ABSENT
        value, updated = pair
        now = self._now()
        if updated + self._ttl <= now:
            self._remove(stored, key)
            return value if self._returns_expired else _ABSENT
        if self._on_read:
            stored[key] = (value, now)
            self._changed.add(self._key_context.key)
        elif value.__class__ not in ATOMIC:
            self._changed.add(self._key_context.key)
        return value

    def _remove(self, stored: dict[K, Any], key: K) -> None:
        del stored[key]
        self._changed.add(self._key_context.key)
        if not stored:
            self._drop()

    def _all(self) -> dict[K, V]:
        self._step()
        key = self._key_context.key
        stored = self._entries.get(key)
        if stored is None:
            return {}
        left = self.prune(stored)
        if left is None:
            self._drop()
        elif self._on_read:
            now = self._now()
            self._put({inner: (value, now) for inner, (value, _) in left.items()})
        elif left is not stored:
            self._put(left)
        elif any(value.__class__ not in ATOMIC for value, _ in left.values()):
            self._changed.add(key)
        seen = stored if self._returns_expired else left or {}
        return {inner: value for inner, (value, _) in seen.items()}

    def get(self, key: K) -> V | None:
        value = self._one(key)
        return None if value is _ABSENT else value

    def contains(self, key: K) -> bool:
        return self._one(key) is not _ABSENT

    def put(self, key: K, value: V) -> None:
        self.put_all({key: value})

    def put_all(self, dict_value: dict[K, V]) -> None:
        self._step()
        if not dict_value:
            return
        now = self._now()
        stored = self._entries.get(self._key_context.key)
        if stored is None:
            stored = {}
        for key, value in dict_value.items():
            stored[key] = (value, now)
        self._put(stored)

    def remove(self, key: K) -> None:
        self._step()
        stored = self._entries.get(self._key_context.key)
        if stored is not None and key in stored:
            self._remove(stored, key)

    def items(self) -> Iterable[tuple[K, V]]:
        return self._all().items()

    def keys(self) -> Iterable[K]:
        return self._all().keys()

    def values(self) -> Iterable[V]:
        return self._all().values()

    def is_empty(self) -> bool:
        self._step()
        stored = self._entries.get(self._key_context.key)
        return stored is None or (not self._returns_expired and self.prune(stored) is None)

    def __iter__(self) -> Iterator[K]:
        return iter(self._all())


EXPIRING_STATES: dict[str, type] = {
    "value": ExpiringValueState,
    "list": ExpiringListState,
    "map": ExpiringMapState,
    "reducing": ExpiringReducingState,
    "aggregating": ExpiringAggregatingState,
}
