"""Orphans: segments that no checkpoint will ever refer to.

A slot writes a segment before its checkpoint is complete, and compaction writes one before the
next checkpoint takes it up. When the checkpoint is aborted or the slot dies, the file stays. It
may not be deleted at once: a checkpoint under way may be about to name it, and a slot that was
only thought dead may still be writing. After a grace period that is longer than any checkpoint
may take, it may.

>>> orphans({"shared/a": 100, "shared/b": 100, "shared/c": 990}, {"shared/a"}, 1000, 500)
['shared/b']
"""

from __future__ import annotations

from collections.abc import Collection, Mapping


def orphans(
    written_ms: Mapping[str, int], referenced: Collection[str], now_ms: int, grace_ms: int
) -> list[str]:
    """Which of the segments, given with the time when each was last written, to delete.

    `referenced` are those of every checkpoint that exists. What the running attempt's slots build
    upon is among them, except for what they wrote within the grace period.
    """
    return sorted(
        path
        for path, written in written_ms.items()
        if path not in referenced and now_ms - written > grace_ms
    )
