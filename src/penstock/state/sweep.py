"""Removing expired entries a few at a time, so that no record waits for all of them.

A sweep goes through a table again and again. Every step looks at some entries, wherever the last
one stopped; what was added meanwhile comes with the next round.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from penstock.state.rocks_entries import RocksEntries
from penstock.state.table import StateTable

Prune = Callable[[Any], Any]
"""What is left of a stored value now: itself if nothing has expired, None if all of it has."""


class Sweep:
    """The rounds through one table."""

    __slots__ = ("_prune", "_round", "_size", "_table")

    def __init__(self, table: StateTable, prune: Prune, size: int) -> None:
        self._table = table
        self._prune = prune
        self._size = size
        self._round: Iterator[tuple[Any, Any]] = iter(())

    def step(self) -> None:
        """Look at the next entries."""
        table = self._table
        for _ in range(self._size):
            item = next(self._round, None)
            if item is None:
                self._round = entries_in_turn(table.entries)
                return
            key, stored = item
            left = None if stored is None else self._prune(stored)
            if left is stored:
                continue
            if left is None:
                del table.entries[key]
            else:
                table.entries[key] = left
            table.changes.current.add(key)


def entries_in_turn(entries: Any) -> Iterator[tuple[Any, Any]]:
    """The entries that there are, each with its value of the moment it is reached."""
    if isinstance(entries, RocksEntries):
        # Not by looking keys up, which would bring all of them into the cache.
        yield from entries.in_turn()
        return
    for key in list(entries):
        yield key, entries.get(key)
