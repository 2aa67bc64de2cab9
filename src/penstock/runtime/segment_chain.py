"""The chain of segments that an operator's keyed state is in: a base, and deltas upon it.

A delta builds on the newest *confirmed* checkpoint. Compaction replaces neighbours in the chain by
one segment that means the same; checkpoints that exist keep the old ones, the next one to be cut
names the new one.

With a changelog the chain grows between checkpoints too: a piece of it counts as soon as it is
durable, for nobody but this subtask decides about it. Cuts are ordered by their marks
(`penstock.state.marks`): what the chain is comes from the latest cut that is settled.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass

from penstock.checkpoint.handles import SegmentHandle
from penstock.state.compaction import FANOUT, Merging, plan

Handles = tuple[SegmentHandle, ...]

MAX_SEGMENT_CHAIN = 8
"""Where segments cannot be read back, a checkpoint after so many deltas writes everything again."""


@dataclass(frozen=True)
class ChainSettings:
    """How an operator writes its keyed state."""

    incremental: bool = True
    compacts: bool = True
    """Whether slots can read segments back, to compact them."""
    fanout: int = FANOUT


class SegmentChain:
    """The segments of one operator in one subtask."""

    def __init__(self, settings: ChainSettings) -> None:
        self._settings = settings
        self._settled: Handles = ()
        self._settled_at = -1
        self._named: frozenset[str] = frozenset()
        """The segments that the newest confirmed checkpoint refers to."""
        self._unsettled: dict[int, Handles] = {}
        self._logged: list[tuple[int, Handles]] = []
        """The pieces of the changelog in the chain that lie behind the newest confirmed checkpoint,
        with their marks."""
        self._replaced: tuple[Handles, SegmentHandle] | None = None
        self._compacting = False
        self._outgrown = False
        """The base is to be replaced by the files of a database."""
        self.closed = False
        """The attempt has ended: nothing may be written any more."""

    def restored(self, handles: Handles) -> None:
        """The state came from `handles` and from nothing else."""
        self._settled = handles
        self._named = _paths(handles)

    def base(self) -> Handles:
        """What the next checkpoint builds upon; nothing means that it is written in full."""
        if not self._settings.incremental:
            return ()
        current = self._current()
        begins = _database(current)
        deltas = current[begins:]
        if self._outgrown or (begins and 2 * _size(deltas) >= current[0].entries_size):
            # Half of what the files hold came after them: time for the files as they are now.
            return ()
        if not self._settings.compacts and len(deltas) >= MAX_SEGMENT_CHAIN:
            return ()
        return current

    @property
    def incremental(self) -> bool:
        return self._settings.incremental

    def files(self) -> dict[str, SegmentHandle]:
        """The files of the database that the newest confirmed checkpoint has, by their names."""
        return {handle.file: handle for handle in self._settled if handle.file}

    def _current(self) -> Handles:
        if self._replaced is None:
            return self._settled
        old, new = self._replaced
        start = _find(self._settled, old)
        assert start is not None, "what was replaced is dropped when it leaves the chain"
        return (*self._settled[:start], new, *self._settled[start + len(old) :])

    def stored(self, mark: int, handles: Handles) -> None:
        """The chain as the checkpoint with this mark has it is durable."""
        self._unsettled[mark] = handles

    def confirm(self, mark: int) -> bool:
        """The checkpoint with this mark is complete; False if nothing was stored for it."""
        handles = self._unsettled.get(mark)
        self._unsettled = {m: kept for m, kept in self._unsettled.items() if m > mark}
        if handles is None:
            return False
        self._named = _paths(handles)
        self._logged = [(at, piece) for at, piece in self._logged if at > mark]
        pieces = tuple(handle for _, piece in self._logged for handle in piece)
        builds_upon = _paths(self._settled) - _paths(pieces)
        if not pieces:
            self._settle(mark, handles)
        elif not builds_upon <= self._named:
            # Pieces that were cut behind this checkpoint build upon an older one, of which nobody
            # keeps what this one does not name. They hold all that changed since the older one, so
            # they mean the same upon this one.
            self._settle(self._settled_at, (*handles, *pieces))
        return True

    def logged(self, mark: int, piece: Handles) -> None:
        """A piece of the changelog, cut at `mark`, is durable.

        Without effect behind a later cut that is settled.
        """
        if mark > self._settled_at:
            self._logged.append((mark, piece))
            # Upon what is settled now. What was so when the piece was cut means the same, but it
            # may have a merged segment in it that no checkpoint names, or those of a checkpoint
            # that is gone by now.
            self._settle(mark, (*self._settled, *piece))

    def _settle(self, mark: int, handles: Handles) -> None:
        """`handles` are the state at `mark`, for good."""
        if handles[:1] != self._settled[:1]:
            self._outgrown = False
        self._settled, self._settled_at = handles, mark
        if self._replaced is not None and _find(handles, self._replaced[0]) is None:
            self._replaced = None

    # --- compaction ---------------------------------------------------------------------------

    def begin_compaction(self, ships_files: bool = False) -> tuple[Handles, Merging] | None:
        """The segments to merge now, and how.

        Where the state could be in files (`ships_files`), a base of entries is not merged again:
        the next checkpoint has files.
        """
        settings = self._settings
        if self._compacting or self._replaced or not (settings.compacts and settings.incremental):
            return None
        # What no checkpoint refers to yet stays as it is: nobody would delete it.
        known = itertools.takewhile(lambda handle: handle.path in self._named, self._settled)
        # A database is not merged with anything. What is upon it is, as if it were all.
        begins = _database(self._settled)
        chosen = plan([handle.size for handle in known][begins:], settings.fanout)
        if chosen is None:
            return None
        if chosen.start == 0 and ships_files and not begins:
            self._outgrown = True
            return None
        self._compacting = True
        how = Merging.JOINED
        if chosen.start == 0:
            how = Merging.NEWEST if begins else Merging.WHOLE
        return self._settled[begins:][chosen.start : chosen.stop], how

    def end_compaction(self, old: Handles, new: SegmentHandle | None) -> None:
        """`new` holds the same as `old`; None if that came to nothing."""
        self._compacting = False
        if new is not None and _find(self._settled, old) is not None:
            self._replaced = (old, new)


def _paths(handles: Handles) -> frozenset[str]:
    return frozenset(handle.path for handle in handles)


def _database(chain: Handles) -> int:
    """So many handles at the front of a chain are a database's."""
    return sum(1 for handle in chain if handle.database)


def _size(handles: Handles) -> int:
    return sum(handle.size for handle in handles)


def _find(chain: Handles, part: Handles) -> int | None:
    """Where `part` begins in `chain`."""
    for start in range(len(chain) - len(part) + 1):
        if chain[start : start + len(part)] == part:
            return start
    return None
