"""The states that user functions work with, by PyFlink's names. All are scoped to one key."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator
from typing import Generic

from penstock.common.type_variables import IN, OUT, K, T, V


class State(ABC):
    """Any state of the current key."""

    __slots__ = ()

    @abstractmethod
    def clear(self) -> None:
        """Remove what is stored under the current key."""


class ValueState(State, Generic[T]):
    """One value."""

    __slots__ = ()

    @abstractmethod
    def value(self) -> T | None:
        """The value, None if there is none."""

    @abstractmethod
    def update(self, value: T | None) -> None:
        """Store `value`; None removes it."""


class AppendingState(State, Generic[IN, OUT]):
    """State that values are added to."""

    __slots__ = ()

    @abstractmethod
    def get(self) -> OUT | None:
        """What the added values amount to, None if none was added."""

    @abstractmethod
    def add(self, value: IN) -> None:
        """Add `value`."""


class MergingState(AppendingState[IN, OUT]):
    """State whose contents can be merged with another's of its kind, as sessions are."""

    __slots__ = ()


class ReducingState(MergingState[T, T]):
    """The reduction of the added values."""

    __slots__ = ()


class AggregatingState(MergingState[IN, OUT]):
    """The aggregate of the added values."""

    __slots__ = ()


class ListState(MergingState[T, Iterable[T]]):
    """A list."""

    __slots__ = ()

    @abstractmethod
    def update(self, values: list[T]) -> None:
        """Replace the list."""

    @abstractmethod
    def add_all(self, values: list[T]) -> None:
        """Append all of `values`."""


class MapState(State, Generic[K, V]):
    """A map."""

    __slots__ = ()

    @abstractmethod
    def get(self, key: K) -> V | None:
        """The value of `key`, None if there is none."""

    @abstractmethod
    def put(self, key: K, value: V) -> None:
        """Store `value` under `key`."""

    @abstractmethod
    def put_all(self, dict_value: dict[K, V]) -> None:
        """Store every value of `dict_value` under its key."""

    @abstractmethod
    def remove(self, key: K) -> None:
        """Remove `key`; nothing happens if it is not there."""

    @abstractmethod
    def contains(self, key: K) -> bool:
        """Whether there is a value under `key`."""

    @abstractmethod
    def items(self) -> Iterable[tuple[K, V]]:
        """The keys with their values."""

    @abstractmethod
    def keys(self) -> Iterable[K]:
        """The keys."""

    @abstractmethod
    def values(self) -> Iterable[V]:
        """The values."""

    @abstractmethod
    def is_empty(self) -> bool:
        """Whether there is no key."""

    def __getitem__(self, key: K) -> V | None:
        return self.get(key)

    def __setitem__(self, key: K, value: V) -> None:
        self.put(key, value)

    def __delitem__(self, key: K) -> None:
        self.remove(key)

    def __contains__(self, key: K) -> bool:
        return self.contains(key)

    @abstractmethod
    def __iter__(self) -> Iterator[K]: ...


class ReadOnlyBroadcastState(State, Generic[K, V]):
    """A map that is the same in every subtask, as the stream that does not write it sees it."""

    __slots__ = ()

    @abstractmethod
    def get(self, key: K) -> V | None:
        """The value of `key`, None if there is none."""

    @abstractmethod
    def contains(self, key: K) -> bool:
        """Whether there is a value under `key`."""

    @abstractmethod
    def items(self) -> Iterable[tuple[K, V]]:
        """The keys with their values."""

    @abstractmethod
    def keys(self) -> Iterable[K]:
        """The keys."""

    @abstractmethod
    def values(self) -> Iterable[V]:
        """The values."""

    @abstractmethod
    def is_empty(self) -> bool:
        """Whether there is no key."""

    @abstractmethod
    def __iter__(self) -> Iterator[K]: ...


class BroadcastState(ReadOnlyBroadcastState[K, V]):
    """The same map as the broadcast stream writes it; every subtask writes its own copy."""

    __slots__ = ()

    @abstractmethod
    def put(self, key: K, value: V) -> None:
        """Store `value` under `key`."""

    @abstractmethod
    def put_all(self, dict_value: dict[K, V]) -> None:
        """Store every value of `dict_value` under its key."""

    @abstractmethod
    def remove(self, key: K) -> None:
        """Remove `key`; nothing happens if it is not there."""
