"""Python's cyclic garbage collector in the process of a slot.

Records and state as a rule have no cycles, but the collector looks for them in everything that is
alive, and nothing else runs in the process meanwhile. So it runs seldom, and does not look into
what an attempt begins with: its restored state may be millions of objects that stay. They are
freed all the same when nothing refers to them any more. What has cycles goes when the attempt is
over.
"""

from __future__ import annotations

import gc


class Collector:
    """Keeps the collector calm from now on, until it is closed."""

    def __init__(self) -> None:
        self._thresholds = gc.get_threshold()
        self._attempt: object | None = None
        gc.freeze()
        # Batches keep thousands of young objects alive for a moment, which makes it scan again and
        # again for cycles that records do not have.
        gc.set_threshold(50_000, 20, 20)

    def attend(self, attempt: object | None) -> None:
        """Say, now and then, which attempt is restored and running, or that none is."""
        if attempt is self._attempt:
            return
        self._attempt = attempt
        if attempt is None:
            # Before the next one is restored: else the state of both would be in memory.
            gc.unfreeze()
            gc.collect()
        gc.freeze()

    def close(self) -> None:
        """Let the collector be as it was."""
        gc.set_threshold(*self._thresholds)
        gc.unfreeze()
