"""Sweeping: orphans are deleted when they have been seen as such for a while.

How long is measured by the driver that looks, on its monotonic clock, from the first time that it
saw the file as an orphan. So neither the clock of the storage nor one that is set back matters,
and nothing goes that has just been written. A driver that was superseded deletes nothing.
"""

from __future__ import annotations

from penstock.checkpoint.orphans import Live, orphans
from penstock.checkpoint.store import CheckpointStore
from penstock.common.clock import Clock

MOST = 64
"""So many are deleted at a time: whoever waits for the storage has a turn in between."""


class OrphanSweep:
    """Sweeps the directory of one job, for one driver."""

    def __init__(self, store: CheckpointStore, retained: int, grace_ms: int, clock: Clock) -> None:
        self._store = store
        self._retained = retained
        self._grace_ms = grace_ms
        self._clock = clock
        self._seen: dict[int | str, int] = {}
        """Since when a checkpoint, by number, or a segment, by name, is an orphan."""

    def run(self, live: Live) -> int:
        """Look, and delete what has been an orphan for long enough; how many are left of those.

        Slow. SupersededError, and nothing is deleted, if another driver has taken the job over.
        """
        contents = self._store.contents()
        found = orphans(contents, live, self._retained)
        now = self._clock.monotonic_ms()
        # Manifests go before segments: a checkpoint that exists is whole.
        order: list[int | str] = [*sorted(found.checkpoints), *sorted(found.segments)]
        self._seen = {each: self._seen.get(each, now) for each in order}
        due = [each for each in order if now - self._seen[each] >= self._grace_ms]
        if due:
            # What was listed is older than this look, so nothing of a later driver is among it.
            self._store.check_current()
        for each in due[:MOST]:
            if isinstance(each, int):
                self._store.remove_checkpoint(each)
            else:
                self._store.remove_segment(each)
            del self._seen[each]
        return len(due[MOST:])
