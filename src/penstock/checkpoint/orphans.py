"""Orphans: files in a job's directory that no checkpoint refers to, and none ever will.

They come from checkpoints that were given up after some subtasks had stored their part, from
compactions whose result was not used, from deletions that failed or were cut short by a crash, and
from drivers that are gone. What may go is decided here, from names and manifests alone:

* Checkpoints older than the newest ones that are to be retained, tombstones and torn folders among
  them, and those of earlier drivers that lead nowhere. Never the one that slots build upon.
* Segments that none of the other checkpoints refers to. Only the running attempt can still come to
  refer to a segment that no manifest names: by a checkpoint under way, by the newest result of a
  compaction, or by what was logged since the checkpoint that slots build upon. The name of a
  segment says of which attempt and checkpoint it is.

So it does not matter for safety how long an orphan has been one. It is left alone for a while all
the same (`penstock.checkpoint.sweeping`).

>>> contents = Contents(("1-1-0-a", "1-2-0-a", "1-3-0-a"), {2: frozenset({"shared/1-2-0-a"})}, (2,))
>>> sorted(orphans(contents, Live(attempt=1, undecided=3, needed=2), retained=1).segments)
['1-1-0-a']
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from penstock.checkpoint.segment_names import CopyName, SegmentName, path_of


@dataclass(frozen=True)
class Contents:
    """What is in a job's directory."""

    segments: tuple[str, ...]
    """All names in `shared/`."""
    checkpoints: Mapping[int, frozenset[str]]
    """The complete checkpoints, each with the paths of the segments that it refers to."""
    counting: tuple[int, ...]
    """Those that count for the driver that asks, newest first."""
    others: frozenset[int] = frozenset()
    """Folders of checkpoints that were abandoned, or never came to be."""
    damaged: frozenset[int] = frozenset()
    """Folders of checkpoints whose manifest cannot be read."""


@dataclass(frozen=True)
class Live:
    """What the running attempt may still refer to, or builds upon."""

    attempt: int
    undecided: int
    """Its checkpoints from this one on are under way, in doubt, or yet to come."""
    needed: int
    """The oldest checkpoint that a later one may build upon."""
    known: frozenset[int] = frozenset()
    """Checkpoints that the driver itself retains, and will delete."""


@dataclass(frozen=True)
class Orphans:
    """What may be deleted."""

    checkpoints: frozenset[int] = frozenset()
    segments: frozenset[str] = frozenset()


def orphans(contents: Contents, live: Live, retained: int) -> Orphans:
    """What of `contents` nobody refers to, when the newest `retained` checkpoints are kept."""
    if not contents.counting:
        # Before the first checkpoint nothing can be told from what is about to be referred to.
        return Orphans()
    newest = min(contents.counting[0], live.needed)
    kept = {*contents.counting[:retained], *live.known}
    folders = {*contents.checkpoints, *contents.others, *contents.damaged}
    gone = frozenset(c for c in folders if c < newest and c not in kept)
    if contents.damaged:
        # Nobody knows what a manifest refers to that cannot be read.
        return Orphans(gone)
    references = frozenset().union(
        *(paths for checkpoint, paths in contents.checkpoints.items() if checkpoint not in gone)
    )
    alive = _live_segments(contents.segments, live)
    segments = frozenset(
        name
        for name in contents.segments
        if SegmentName.parse(name) and name not in alive and path_of(name) not in references
    )
    return Orphans(gone, segments)


def _live_segments(names: Iterable[str], live: Live) -> set[str]:
    """The segments that a manifest which is yet to be written may name."""
    alive: set[str] = set()
    merged: dict[tuple[int, str], tuple[int, str]] = {}
    for name in names:
        parsed = SegmentName.parse(name)
        if parsed is None or isinstance(parsed, CopyName):
            # What was copied is referred to before the attempt begins.
            continue
        checkpoint, current = parsed.checkpoint, parsed.attempt == live.attempt
        if parsed.attempt > live.attempt or (current and checkpoint >= live.undecided):
            alive.add(name)
        elif current and parsed.is_logged and checkpoint > live.needed:
            # Checkpoints may fail, and what was logged counts all the same.
            alive.add(name)
        elif current and parsed.is_merged:
            # The chain of an operator has one result of a compaction at most in reserve.
            chain = (parsed.subtask, parsed.owner)
            merged[chain] = max(merged.get(chain, (0, "")), (checkpoint, name))
    return alive | {name for _, name in merged.values()}
