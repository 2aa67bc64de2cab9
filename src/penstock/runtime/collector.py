"""Python's cyclic garbage collector in the process of a slot.

Records and state as a rule have no cycles, but the collector looks for them in everything that is
alive, and nothing else runs in the process meanwhile: with large state that takes seconds. So it
runs seldom, and does not look into what an attempt begins with: its restored state may be millions
of objects that stay. They are freed all the same when nothing refers to them any more. What has
cycles can be collected when the attempt is over.
"""

from __future__ import annotations

import contextlib
import gc
from collections.abc import Iterator


class Collector:
    """Keeps the collector calm from now on, until it is closed."""

    def __init__(self) -> None:
        self._thresholds = gc.get_threshold()
        gc.freeze()
        # Batches keep thousands of young objects alive for a moment, which makes it scan again and
        # again for cycles that records do not have.
        gc.set_threshold(50_000, 20, 20)

    @contextlib.contextmanager
    def quiet(self) -> Iterator[None]:
        """No collection in the block; what was made in it is not looked into afterwards either."""
        gc.disable()
        try:
            yield
        finally:
            gc.freeze()
            gc.enable()

    def attempt_ended(self) -> None:
        """What is left of an attempt may be collected."""
        gc.unfreeze()

    def close(self) -> None:
        """Let the collector be as it was."""
        gc.set_threshold(*self._thresholds)
        gc.unfreeze()
