"""When the JobMaster sweeps orphans: now and then while an attempt runs, off its thread."""

from __future__ import annotations

import logging
from collections.abc import Callable

from penstock.checkpoint.orphans import Live
from penstock.checkpoint.sweeping import OrphanSweep
from penstock.errors import SupersededError
from penstock.jobmanager.environment import JobMasterEnvironment
from penstock.jobmanager.job import Job

log = logging.getLogger(__name__)

_SHORTEST_MS = 200
"""The least time between two looks, however short the grace period is."""


class Sweeps:
    """The sweeps of one job, over all of its attempts."""

    def __init__(self, job: Job, environment: JobMasterEnvironment) -> None:
        self._environment = environment
        grace = job.checkpoints.orphan_grace_ms
        self._every_ms = max(grace // 4, _SHORTEST_MS)
        self._sweep = (
            OrphanSweep(job.store, job.checkpoints.retained, grace, environment.clock)
            if job.store is not None
            else None
        )
        self._next_ms: int | None = None

    def attempt_started(self, now_ms: int) -> None:
        if self._sweep is not None:
            self._next_ms = now_ms + self._every_ms

    def next_wakeup_ms(self) -> int | None:
        return self._next_ms

    def tick(
        self, now_ms: int, live: Callable[[], Live], superseded: Callable[[Exception], None]
    ) -> None:
        """Sweep if it is time to; `superseded` hears that the job is another driver's."""
        sweep = self._sweep
        if sweep is None or self._next_ms is None or now_ms < self._next_ms:
            return
        # Not before this one has ended.
        self._next_ms = None
        still_live = live()

        def done(left: int | None, error: Exception | None) -> None:
            pause = _SHORTEST_MS if left else self._every_ms
            self._next_ms = self._environment.clock.monotonic_ms() + pause
            if isinstance(error, SupersededError):
                superseded(error)
            elif error is not None:
                log.warning("files that no checkpoint refers to could not be swept: %s", error)

        self._environment.io.submit(lambda: sweep.run(still_live), done)
