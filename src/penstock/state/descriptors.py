"""State descriptors: the name, the kind and the type of a piece of state."""

from __future__ import annotations

from abc import ABC
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from penstock.common.typeinfo import ListTypeInfo, MapTypeInfo, TypeInformation


@dataclass(frozen=True)
class StateDescriptor(ABC):
    """What a user asks for; state is found again by `name` within its operator."""

    name: str
    type_info: TypeInformation

    @property
    def kind(self) -> str:
        """What kind of state it is, as a word: value, list, map, reducing, aggregating."""
        return type(self).__name__.removesuffix("StateDescriptor").lower()

    def get_name(self) -> str:
        """The name."""
        return self.name

    def stored_type(self) -> TypeInformation:
        """The type of what is stored under one key."""
        return self.type_info

    def describe(self) -> str:
        """Kind and types: what two declarations of one state must agree on."""
        return f"{self.kind} of {self.type_info}"


@dataclass(frozen=True)
class ValueStateDescriptor(StateDescriptor):
    """One value per key."""

    def __init__(self, name: str, value_type_info: TypeInformation) -> None:
        object.__setattr__(self, "name", name)
        object.__setattr__(self, "type_info", value_type_info)


@dataclass(frozen=True)
class ListStateDescriptor(StateDescriptor):
    """A list per key."""

    def __init__(self, name: str, elem_type_info: TypeInformation) -> None:
        object.__setattr__(self, "name", name)
        object.__setattr__(self, "type_info", elem_type_info)

    def stored_type(self) -> TypeInformation:
        return ListTypeInfo(self.type_info)


@dataclass(frozen=True)
class MapStateDescriptor(StateDescriptor):
    """A map per key."""

    key_type_info: TypeInformation

    def __init__(
        self, name: str, key_type_info: TypeInformation, value_type_info: TypeInformation
    ) -> None:
        object.__setattr__(self, "name", name)
        object.__setattr__(self, "type_info", value_type_info)
        object.__setattr__(self, "key_type_info", key_type_info)

    def stored_type(self) -> TypeInformation:
        return MapTypeInfo(self.key_type_info, self.type_info)

    def describe(self) -> str:
        return f"{self.kind} of {self.key_type_info}, {self.type_info}"


@dataclass(frozen=True)
class ReducingStateDescriptor(StateDescriptor):
    """One value per key, into which added values are reduced."""

    reduce: Callable[[Any, Any], Any]

    def __init__(self, name: str, reduce_function: Any, type_info: TypeInformation) -> None:
        object.__setattr__(self, "name", name)
        object.__setattr__(self, "type_info", type_info)
        reduce = getattr(reduce_function, "reduce", reduce_function)
        object.__setattr__(self, "reduce", reduce)

    def get_reduce_function(self) -> Callable[[Any, Any], Any]:
        """The function of two values that makes one."""
        return self.reduce


@dataclass(frozen=True)
class AggregatingStateDescriptor(StateDescriptor):
    """An accumulator per key, into which added values are aggregated."""

    function: Any

    def __init__(self, name: str, agg_function: Any, state_type_info: TypeInformation) -> None:
        object.__setattr__(self, "name", name)
        object.__setattr__(self, "type_info", state_type_info)
        object.__setattr__(self, "function", agg_function)

    def get_agg_function(self) -> Any:
        """The AggregateFunction."""
        return self.function
