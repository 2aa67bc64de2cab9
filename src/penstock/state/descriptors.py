"""State descriptors: the name, the kind and the type of a piece of state."""

from __future__ import annotations

from abc import ABC
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Generic

from penstock.common.function_types import Aggregates, Reduces
from penstock.common.type_variables import ACC, IN, OUT, K, T, V
from penstock.common.typeinfo import (
    ListTypeInfo,
    MapTypeInfo,
    TupleTypeInfo,
    TypeInformation,
    Types,
)
from penstock.errors import StateError
from penstock.state.ttl_config import StateTtlConfig


@dataclass(frozen=True)
class StateDescriptor(ABC, Generic[T]):
    """What a user asks for; state is found again by `name` within its operator."""

    name: str
    type_info: TypeInformation[T]
    ttl: StateTtlConfig | None = field(default=None, kw_only=True)
    """How long entries live; None if they do not expire."""

    @property
    def kind(self) -> str:
        """What kind of state it is, as a word: value, list, map, reducing, aggregating."""
        return type(self).__name__.removesuffix("StateDescriptor").lower()

    def get_name(self) -> str:
        """The name."""
        return self.name

    def enable_time_to_live(self, ttl_config: StateTtlConfig) -> None:
        """Let entries expire; to be called before the state is asked for."""
        object.__setattr__(self, "ttl", ttl_config if ttl_config.is_enabled() else None)

    def stored_kind(self) -> str:
        """The kind of what is stored: with times, which entries that expire have beside them."""
        return self.kind if self.ttl is None else f"expiring {self.kind}"

    def stored_type(self) -> TypeInformation:
        """The type of what is stored under one key."""
        return self._timed()

    def _timed(self) -> TypeInformation:
        """The declared type; of entries that expire with the time, as a pair."""
        return self.type_info if self.ttl is None else TupleTypeInfo([self.type_info, Types.LONG()])

    def describe(self) -> str:
        """Kind and types: what two declarations of one state must agree on."""
        return f"{self.stored_kind()} of {self.type_info}"


@dataclass(frozen=True)
class ValueStateDescriptor(StateDescriptor[T]):
    """One value per key."""

    def __init__(self, name: str, value_type_info: TypeInformation[T]) -> None:
        object.__setattr__(self, "name", name)
        object.__setattr__(self, "type_info", value_type_info)


@dataclass(frozen=True)
class ListStateDescriptor(StateDescriptor[T]):
    """A list per key."""

    def __init__(self, name: str, elem_type_info: TypeInformation[T]) -> None:
        object.__setattr__(self, "name", name)
        object.__setattr__(self, "type_info", elem_type_info)

    def stored_type(self) -> TypeInformation:
        return ListTypeInfo(self._timed())


@dataclass(frozen=True)
class MapStateDescriptor(StateDescriptor[V], Generic[K, V]):
    """A map per key."""

    key_type_info: TypeInformation[K]

    def __init__(
        self, name: str, key_type_info: TypeInformation[K], value_type_info: TypeInformation[V]
    ) -> None:
        object.__setattr__(self, "name", name)
        object.__setattr__(self, "type_info", value_type_info)
        object.__setattr__(self, "key_type_info", key_type_info)

    def stored_type(self) -> TypeInformation:
        return MapTypeInfo(self.key_type_info, self._timed())

    def describe(self) -> str:
        return f"{self.stored_kind()} of {self.key_type_info}, {self.type_info}"


@dataclass(frozen=True)
class ReducingStateDescriptor(StateDescriptor[T]):
    """One value per key, into which added values are reduced."""

    reduce: Callable[[T, T], T]

    def __init__(
        self,
        name: str,
        reduce_function: Callable[[T, T], T] | Reduces[T],
        type_info: TypeInformation[T],
    ) -> None:
        object.__setattr__(self, "name", name)
        object.__setattr__(self, "type_info", type_info)
        reduce = getattr(reduce_function, "reduce", reduce_function)
        object.__setattr__(self, "reduce", reduce)

    def get_reduce_function(self) -> Callable[[T, T], T]:
        """The function of two values that makes one."""
        return self.reduce


@dataclass(frozen=True)
class AggregatingStateDescriptor(StateDescriptor[ACC], Generic[IN, ACC, OUT]):
    """An accumulator per key, into which added values are aggregated."""

    function: Aggregates[IN, OUT]

    def __init__(
        self,
        name: str,
        agg_function: Aggregates[IN, OUT],
        state_type_info: TypeInformation[ACC],
    ) -> None:
        object.__setattr__(self, "name", name)
        object.__setattr__(self, "type_info", state_type_info)
        object.__setattr__(self, "function", agg_function)

    def get_agg_function(self) -> Aggregates[IN, OUT]:
        """The AggregateFunction."""
        return self.function


def refuse_ttl(descriptor: StateDescriptor, where: str) -> None:
    """StateError if the descriptor has a time to live, which only keyed state can have."""
    if descriptor.ttl is not None:
        raise StateError(
            f"state {descriptor.name!r}: {where} has no time to live, only keyed state has; "
            "remove enable_time_to_live from its descriptor"
        )
