"""The cyclic garbage collector of a slot's process.

A collection looks at every container that there is and keeps all threads waiting. With large state
that takes seconds, so state that is restored is not looked at: it is in use, and goes when the
attempt does.
"""

from __future__ import annotations

import contextlib
import gc
from collections.abc import Iterator

Thresholds = tuple[int, int, int]


def calm() -> Thresholds:
    """Let the collector run less often; the thresholds as they were.

    Batches keep thousands of young objects alive for a moment, which makes it scan again and
    again for cycles that records do not have.
    """
    thresholds = gc.get_threshold()
    gc.freeze()
    gc.set_threshold(50_000, 20, 20)
    return thresholds


def back_to(thresholds: Thresholds) -> None:
    """As it was before `calm`."""
    gc.set_threshold(*thresholds)
    gc.unfreeze()


@contextlib.contextmanager
def quiet() -> Iterator[None]:
    """No collection inside the block; what was made in it is not looked at afterwards either."""
    gc.disable()
    try:
        yield
    finally:
        gc.freeze()
        gc.enable()
