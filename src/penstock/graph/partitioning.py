"""How records are spread over the subtasks that receive them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Partitioning:
    """A rule on an edge; `pointwise` rules connect subtask i with subtask i only."""

    @property
    def name(self) -> str:
        return type(self).__name__.removesuffix("Partitioning").upper()

    @property
    def pointwise(self) -> bool:
        return False


@dataclass(frozen=True)
class ForwardPartitioning(Partitioning):
    @property
    def pointwise(self) -> bool:
        return True


@dataclass(frozen=True)
class RebalancePartitioning(Partitioning):
    pass


@dataclass(frozen=True)
class BroadcastPartitioning(Partitioning):
    pass


@dataclass(frozen=True)
class HashPartitioning(Partitioning):
    key_selector: Callable[[Any], Any]


@dataclass(frozen=True)
class CustomPartitioning(Partitioning):
    """`partition(key, number_of_partitions)` names the receiver."""

    partition: Callable[[Any, int], int]
    key_selector: Callable[[Any], Any]
