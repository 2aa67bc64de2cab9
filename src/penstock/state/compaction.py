"""Compaction: which segments of a chain to merge, and the merging.

A chain of segments is read from its oldest, the base, to its newest delta. Merging keeps a restore
short and bounds what is stored. Deltas of about one size are *joined*, block after block as they
are, which costs no more than copying their bytes. When all deltas together are as large as the
base, everything is *merged*: entries are decoded and only the newest of each key is kept. So an
entry that changed is decoded about twice in its life and encoded once, whatever the state's size.
Where the base is the files of a database, it is left alone, and the same is done with its deltas.

>>> plan([1000, 10, 10, 10], fanout=4), plan([1000, 10, 10, 10, 10], fanout=4)
(None, range(1, 5))
>>> plan([1000, 600, 200, 200], fanout=4)
range(0, 4)

Segments are merged from their bytes, away from the live objects: by state and key group, a few at
a time, so that whoever runs it can do other things in between. They are read by key groups too, so
that what is in memory is a few groups; what has been merged waits in a spool.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from enum import Enum, auto

from penstock.common.spool import Spool
from penstock.state.entries import has_removals, merge_entries
from penstock.state.schema import type_of
from penstock.state.segments import GroupBlock

FANOUT = 8
"""So many segments of about one size are merged into one."""


def plan(sizes: Sequence[int], fanout: int = FANOUT) -> range | None:
    """Which segments of a chain, given by size, to merge now; they are neighbours.

    As long as it is followed, a chain has fewer than `fanout` segments, or all of them together
    are less than twice the base; and it never has four times `fanout`.
    """
    count = len(sizes)
    if count < fanout:
        return None
    total = sum(sizes)
    if total - sizes[0] >= sizes[0]:
        return range(count)
    for start in range(1, count - fanout + 1):
        total -= sizes[start - 1]
        # The oldest is no more than its share: none is much larger than what comes after it.
        if sizes[start] * fanout <= total:
            return range(start, count)
    # Each is larger than all that follow it together: the youngest ones are the cheapest to merge.
    return range(count - fanout, count) if count >= 4 * fanout else None


class Merging(Enum):
    """How segments become one."""

    JOINED = auto()
    """Block after block, as they are."""
    NEWEST = auto()
    """Of each key what is newest; removals stay, for what lies below."""
    WHOLE = auto()
    """The same, and nothing lies below: removals are forgotten."""


def spans_of(sizes: Mapping[int, int], groups: range, most: int) -> Iterator[range]:
    """`groups` in spans that end where their blocks, by `sizes` of groups, come to `most` bytes.

    >>> list(spans_of({0: 60, 1: 60, 2: 10, 3: 10}, range(4), 100))
    [range(0, 2), range(2, 4)]
    """
    start, size = groups.start, 0
    for group in groups:
        size += sizes.get(group, 0)
        if size >= most:
            yield range(start, group + 1)
            start, size = group + 1, 0
    if start < groups.stop:
        yield range(start, groups.stop)


class Merge:
    """Blocks of segments, oldest first, on their way to become those of one.

    They come in lots, and one lot after another is read and merged. All that there is of a key
    group is in one lot.
    """

    def __init__(self, lots: Iterable[Iterable[GroupBlock]], how: Merging) -> None:
        self._how = how
        self._lots = iter(lots)
        self._waiting: dict[tuple[str, int], list[GroupBlock]] = {}
        self._order: list[tuple[str, int]] = []
        self._merged: list[GroupBlock] = []
        self._spool = Spool()
        self._read()

    def _read(self) -> None:
        """Read lots until there is something to merge."""
        while not self._order and (lot := next(self._lots, None)) is not None:
            for block in lot:
                if self._how is Merging.JOINED:
                    self._merged.append(block.kept_in(self._spool))
                else:
                    self._waiting.setdefault((block.state, block.group), []).append(block)
            self._order = sorted(self._waiting, reverse=True)

    def step(self, size: int) -> bool:
        """Merge blocks of about `size` bytes, or read a lot; False when none are left."""
        while self._order and size > 0:
            blocks = self._waiting.pop(self._order.pop())
            size -= sum(block.size for block in blocks)
            merged = _merge(blocks, self._how is Merging.NEWEST)
            if merged is not None:
                self._merged.append(merged.kept_in(self._spool))
        self._read()
        return bool(self._order)

    def blocks(self) -> list[GroupBlock]:
        """All blocks of the one segment, once no step is left."""
        return self._merged


def _merge(blocks: list[GroupBlock], keep_removed: bool) -> GroupBlock | None:
    newest = blocks[-1]
    if len(blocks) == 1 and (keep_removed or not has_removals(newest.payload)):
        return newest
    versions = [(block.payload, block.schema) for block in blocks]
    payload = merge_entries(type_of(newest.schema), versions, keep_removed=keep_removed)
    return None if payload is None else replace(newest, parts=[payload])
