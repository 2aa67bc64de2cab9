"""Sweeps: whatever was left behind when a driver is replaced is gone after the grace period.

    SweepScenario(4711).run().verify()

As `TakeoverScenario`: drivers die, pause or go on, in the middle of checkpoints, compactions and
deletions. The next one sweeps before it begins, as it would after a while. Then its directory holds
the checkpoints that are to be retained, what they refer to and nothing else; and the job goes on
from them to the right result.
"""

from __future__ import annotations

import random

from penstock.checkpoint.orphans import Live
from penstock.checkpoint.segment_names import FOLDER, path_of
from penstock.checkpoint.store import CheckpointStore
from penstock.checkpoint.sweeping import OrphanSweep
from penstock.testing.faults import FaultRates
from penstock.testing.simulator import Simulation
from penstock.testing.takeovers import TakeoverScenario

_GRACE_MS = 60_000
_TROUBLE = FaultRates(
    crash_soon=0.1, crash=0.001, expiry=0.02, manifest_error=0.1, storage_error=0.01, budget=15
)
"""More goes wrong than with the rates of a seed, so that there is something to sweep."""


class SweepScenario(TakeoverScenario):
    """A scenario in which every driver sweeps what the ones before it have left."""

    def __init__(self, seed: int, rates: FaultRates | None = None) -> None:
        super().__init__(seed, rates or _TROUBLE)
        self.left: list[str] = []
        """What was wrong after a sweep."""
        self.swept = 0
        """How many files went."""

    def grace_ms(self, rng: random.Random) -> int:
        # Nobody sweeps while the job runs, so that much is left to be swept afterwards.
        return 3_600_000

    def _next_takeover(self) -> int:
        # When there are checkpoints already.
        return self._ticks + self._rng.randrange(300, 1200)

    def took_over(self, driver: Simulation) -> None:
        store = driver.job.store
        if store is None:
            return
        self.filesystem.armed = False
        newest, _ = store.newest()
        start = newest.checkpoint if newest is not None else 0
        # As a driver does before its first attempt: from here on nothing older leads anywhere.
        store.note_start(start)
        before = self._names(store)
        self._sweep(driver, store, start)
        after = self._names(store)
        self.swept += len(before - after)
        self.left += self._wrong(store, start)
        self.filesystem.armed = True

    def _sweep(self, driver: Simulation, store: CheckpointStore, start: int) -> None:
        live = Live(driver.job.attempts_before, 1 << 62, start)
        sweep = OrphanSweep(store, driver.job.checkpoints.retained, _GRACE_MS, driver.clock)
        before = self._names(store)
        sweep.run(live)
        if self._names(store) != before:
            self.left.append("something went before the grace period was over")
        driver.clock.now += _GRACE_MS
        while sweep.run(live):
            pass

    def _names(self, store: CheckpointStore) -> set[str]:
        root = f"/checkpoints/{store.job_id}/"
        files = (path.removeprefix(root) for path in self.filesystem.files)
        return {name for name in files if name.startswith(("chk-", FOLDER))}

    def _wrong(self, store: CheckpointStore, start: int) -> list[str]:
        if not start:
            return []
        newest, damaged = store.newest()
        contents = store.contents()
        wrong = [f"after a sweep: {line}" for line in damaged]
        if newest is None or newest.checkpoint != start:
            wrong.append(f"checkpoint {start} was the newest and is gone")
        referred = frozenset().union(*contents.checkpoints.values())
        surplus = sorted({path_of(name) for name in contents.segments} - referred)
        wrong += [f"{path} is left and nothing refers to it" for path in surplus]
        older = [c for c in (*contents.others, *contents.checkpoints) if c < start]
        if len(older) >= self.job.checkpoints.retained:
            wrong.append(f"older checkpoints are left: {sorted(older)}")
        return wrong

    def problems(self) -> list[str]:
        return self.left + super().problems()
