"""Which checkpoints count: those of the newest driver, and what it built on.

Every driver that takes a job id over is a new *generation*. Before it does anything else it notes
at which checkpoint it starts. What an older driver completes after that leads nowhere:

>>> lineage({1: 1, 2: 1, 3: 1, 4: 2}, starts={1: 0, 2: 2}, generation=2)   # 3 came too late
[4, 2, 1]
>>> lineage({1: 1, 2: 1, 3: 1, 4: 2}, starts={1: 0, 2: 2, 3: 0}, generation=3)   # a new beginning
[]
"""

from __future__ import annotations

import sys
from collections.abc import Mapping

ATTEMPTS_PER_GENERATION = 1_000_000
"""Attempts of different drivers have different numbers, so their files have different names."""


def lineage(
    checkpoints: Mapping[int, int], starts: Mapping[int, int], generation: int
) -> list[int]:
    """The checkpoints that count for the driver of `generation`, newest first.

    `checkpoints` has the generation of each complete checkpoint, `starts` the checkpoint that each
    generation began with, 0 for none. A generation that noted no start did nothing.
    """
    counting: list[int] = []
    newest = sys.maxsize
    for each in sorted({*checkpoints.values(), *starts, generation}, reverse=True):
        if each <= generation:
            counting += [c for c, g in checkpoints.items() if g == each and c <= newest]
            newest = min(newest, starts.get(each, newest))
    return sorted(counting, reverse=True)


def attempts_before(generation: int) -> int:
    """The number of the last attempt that a driver before this generation can have made."""
    return max(generation - 1, 0) * ATTEMPTS_PER_GENERATION
