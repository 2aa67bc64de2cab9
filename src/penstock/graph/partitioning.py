"""How records are spread over the subtasks that receive them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar


@dataclass(frozen=True)
class Partitioning:
    """A rule on an edge: who may send to whom, and who of these gets a record."""

    overtaken: ClassVar[bool] = True
    """Whether the barriers of unaligned checkpoints overtake records on such an edge."""

    @property
    def name(self) -> str:
        return type(self).__name__.removesuffix("Partitioning").upper()

    def receivers(self, sender: int, senders: int, receivers: int) -> Sequence[int]:
        """The subtasks that subtask `sender` of `senders` has a channel to."""
        return range(receivers)


@dataclass(frozen=True)
class ForwardPartitioning(Partitioning):
    """To the subtask of the same number."""

    overtaken: ClassVar[bool] = False

    def receivers(self, sender: int, senders: int, receivers: int) -> Sequence[int]:
        return [sender]


@dataclass(frozen=True)
class RebalancePartitioning(Partitioning):
    """To all in turns."""


@dataclass(frozen=True)
class RescalePartitioning(Partitioning):
    """In turns to a share of the receivers, so that few channels are needed.

    >>> [list(RescalePartitioning().receivers(sender, 2, 5)) for sender in range(2)]
    [[0, 1, 2], [3, 4]]
    >>> [list(RescalePartitioning().receivers(sender, 5, 2)) for sender in range(5)]
    [[0], [0], [0], [1], [1]]
    """

    def receivers(self, sender: int, senders: int, receivers: int) -> Sequence[int]:
        if senders >= receivers:
            return [sender * receivers // senders]
        return [r for r in range(receivers) if r * senders // receivers == sender]


@dataclass(frozen=True)
class ShufflePartitioning(Partitioning):
    """To any, at random."""


@dataclass(frozen=True)
class GlobalPartitioning(Partitioning):
    """All to the first; the others have channels too, in which time and barriers flow."""


@dataclass(frozen=True)
class BroadcastPartitioning(Partitioning):
    """To all, each record."""

    overtaken: ClassVar[bool] = False


@dataclass(frozen=True)
class HashPartitioning(Partitioning):
    """To the owner of the record's key."""

    key_selector: Callable[[Any], Any]


@dataclass(frozen=True)
class CustomPartitioning(Partitioning):
    """`partition(key, number_of_partitions)` names the receiver."""

    overtaken: ClassVar[bool] = False
    partition: Callable[[Any, int], int]
    key_selector: Callable[[Any], Any]
