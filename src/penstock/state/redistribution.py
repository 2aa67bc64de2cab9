"""Who gets what of operator state when an operator comes back with another number of subtasks.

Pure functions over what each of the old subtasks had, in order.

>>> split([["a", "b"], ["c"], ["d", "e"]], 2)
[['a', 'c', 'e'], ['b', 'd']]
>>> union([["a", "b"], ["c"]])
['a', 'b', 'c']
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar

T = TypeVar("T")


def split(parts: Sequence[Sequence[T]], parallelism: int) -> list[list[T]]:
    """List state: elements are dealt out in turn, and each goes to exactly one new subtask.

    With as many subtasks as before each keeps its own.
    """
    if len(parts) == parallelism:
        return [list(part) for part in parts]
    everything = union(parts)
    return [everything[subtask::parallelism] for subtask in range(parallelism)]


def union(parts: Sequence[Sequence[T]]) -> list[T]:
    """Union list state: every new subtask gets all elements and picks its own."""
    return [element for part in parts for element in part]


def copy_of(parts: Sequence[T], subtask: int) -> T:
    """Broadcast state: every old subtask had the same, so any copy does; the reading is spread."""
    return parts[subtask % len(parts)]
