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

    Cuts are numbered: those of checkpoints, or marks of them (`penstock.state.marks`). A cut takes
    time for the keys that it holds, however many checkpoints failed before it.
    """

    __slots__ = ("_newest", "_newest_keys", "_noted", "_older", "current")

    def __init__(self) -> None:
        self.current: set[Any] = set()
        self._noted: set[Any] = set()
        self._newest = 0
        """The last cut."""
        # A tuple: after the first checkpoint every key is in here, and a set takes four times that.
        self._newest_keys: tuple[Any, ...] = ()
        self._older: dict[Any, int] = {}
        """Keys of earlier cuts, each with the last of those that it was in: as a rule none.

        Those cuts are of failed checkpoints, or of checkpoints that run side by side.
        """

    def note(self) -> None:
        """Empty `current`, for whoever watches it, without ending the generation."""
        self._noted |= self.current
        self.current.clear()

    def moved(self) -> bool:
        """Whether anything changed since the last cut."""
        return bool(self.current or self._noted)

    def end(self, checkpoint: int) -> None:
        """End the current generation at `checkpoint`."""
        self._older.update(dict.fromkeys(self._newest_keys, self._newest))
        self._newest, self._newest_keys = checkpoint, tuple(self._noted | self.current)
        self._noted.clear()
        # The set itself stays: states hold a reference to it.
        self.current.clear()

    def changed(self) -> set[Any]:
        """All keys of generations that ended and are not settled: what a delta must hold."""
        return set(self._older).union(self._newest_keys)

    def cut(self, checkpoint: int) -> set[Any]:
        """End the current generation at `checkpoint`; all keys its delta must hold."""
        self.end(checkpoint)
        return self.changed()

    def confirm(self, checkpoint: int) -> None:
        """`checkpoint` is complete: what it or an earlier one cut is settled."""
        self._older = {key: last for key, last in self._older.items() if last > checkpoint}
        if self._newest <= checkpoint:
            self._newest_keys = ()
