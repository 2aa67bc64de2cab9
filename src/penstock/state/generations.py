"""Which keys a checkpoint must write: what changed since the last *confirmed* one.

Every cut ends a generation of changes. A checkpoint may be aborted after its cut, so its changes
are not settled until it is confirmed: until then they are written again with every later delta.

>>> changes = Generations()
>>> changes.current.update({"a", "b"}); sorted(changes.cut(1))
['a', 'b']
>>> changes.current.add("c"); sorted(changes.cut(2))    # 1 is not confirmed: it counts again
['a', 'b', 'c']
>>> changes.confirm(1); changes.current.add("d"); sorted(changes.cut(3))
['c', 'd']
"""

from __future__ import annotations

from typing import Any


class Generations:
    """The changed keys of one table, by the cut that ended their generation.

    Cuts are numbered: those of checkpoints, or marks of them (`penstock.state.marks`).
    """

    __slots__ = ("_noted", "_unconfirmed", "current")

    def __init__(self) -> None:
        self.current: set[Any] = set()
        self._noted: set[Any] = set()
        # Tuples: after the first checkpoint every key is in here, and a set takes four times that.
        self._unconfirmed: dict[int, tuple[Any, ...]] = {}

    def note(self) -> None:
        """Empty `current`, for whoever watches it, without ending the generation."""
        self._noted |= self.current
        self.current.clear()

    def moved(self) -> bool:
        """Whether anything changed since the last cut."""
        return bool(self.current or self._noted)

    def end(self, checkpoint: int) -> None:
        """End the current generation at `checkpoint`."""
        self._unconfirmed[checkpoint] = tuple(self._noted | self.current)
        self._noted.clear()
        # The set itself stays: states hold a reference to it.
        self.current.clear()

    def changed(self) -> set[Any]:
        """All keys of generations that ended and are not settled: what a delta must hold."""
        return set().union(*self._unconfirmed.values())

    def cut(self, checkpoint: int) -> set[Any]:
        """End the current generation at `checkpoint`; all keys its delta must hold."""
        self.end(checkpoint)
        return self.changed()

    def confirm(self, checkpoint: int) -> None:
        """`checkpoint` is complete: what it or an earlier one cut is settled."""
        self._unconfirmed = {c: keys for c, keys in self._unconfirmed.items() if c > checkpoint}
