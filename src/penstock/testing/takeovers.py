"""Takeovers: drivers of one job id that die, are paused, or know nothing of each other.

    TakeoverScenario(4711).run().verify()

The program, its settings and its faults are those of `Scenario(seed)`. At random moments another
driver starts under the same job id, on the same storage, with slots of its own. The one before it
is dead by then, or stands still for a while and goes on, or never stops. In the end the newest has
finished the job, the others have found out, and the files hold every record once.
"""

from __future__ import annotations

import enum
from dataclasses import replace

from penstock.common.job_status import JobStatus
from penstock.errors import StorageError, SupersededError
from penstock.jobmanager.job import Job
from penstock.testing.faults import FaultRates
from penstock.testing.scenarios import Scenario
from penstock.testing.simulator import Simulation
from penstock.testing.stages import begin_run

_LONGEST_PAUSE = 3000
_MOST_TICKS = 400_000


class Fate(enum.Enum):
    """What becomes of a driver when the next one starts."""

    DEAD = "dead"
    PAUSED = "paused"
    ALIVE = "alive"


class TakeoverScenario(Scenario):
    """A scenario with several drivers."""

    def __init__(self, seed: int, rates: FaultRates | None = None) -> None:
        super().__init__(seed, rates)
        self._rng = self.choices("takeovers")
        self.fates: list[Fate] = []
        """Of each driver but the last."""
        self.drivers = [self.simulation]
        self._finishing: set[int] = set()
        self._paused: dict[int, int] = {}
        self._ticks = 0
        self._try_again = False

    def run(self) -> TakeoverScenario:
        begin_run(self.seed)
        try:
            self._run()
        finally:
            self.filesystem.forget()
        return self

    def _run(self) -> None:
        takeovers = self._rng.choice((1, 1, 2, 3)) if self.checkpointing else 0
        due = self._next_takeover()
        self.simulation.master.start()
        while (running := self._running()) or self._try_again:
            assert self._ticks < _MOST_TICKS, "the drivers hang"
            self._ticks += 1
            if self._try_again or (self._ticks >= due and len(self.drivers) <= takeovers):
                due = self._next_takeover()
                self._take_over()
                continue
            able = [number for number in running if self._paused.get(number, 0) <= self._ticks]
            if able:
                self.drivers[self._rng.choice(able)].tick()

    def _next_takeover(self) -> int:
        return self._ticks + self._rng.randrange(1, self._rng.choice((50, 400, 1500)))

    def _running(self) -> list[int]:
        """The drivers that may still do something."""
        dead = {number for number, fate in enumerate(self.fates) if fate is Fate.DEAD}
        return [n for n, each in enumerate(self.drivers) if not each.over and n not in dead]

    def _take_over(self) -> None:
        before = self.drivers[-1].master
        self._try_again = False
        if before._final is not None and not isinstance(before.error, SupersededError):
            # It has begun to end the job: from then on the id stands for a new one.
            return
        self.filesystem.may_crash = False
        try:
            job = replace(self.next_job(), store=self.job.store and self.job.store.claim())
            seed = f"{self.seed}/driver {len(self.drivers) + 1}"
            after = Simulation(seed, job, self.rates, self.filesystem)
        except StorageError:
            # A driver that could not start, and perhaps has taken the job over all the same.
            self._try_again = True
            return
        after.clock.now = self.simulation.clock.now
        self.fates.append(self.next_fate())
        if self.fates[-1] is Fate.PAUSED:
            pause = self._rng.randrange(1, _LONGEST_PAUSE)
            self._paused[len(self.drivers) - 1] = self._ticks + pause
        if before._checkpoints.finishing:
            self._finishing.add(len(self.drivers) - 1)
        self.drivers.append(after)
        self.simulation = after
        self.took_over(after)
        after.master.start()

    def next_fate(self) -> Fate:
        """What becomes of the driver that was at work until now."""
        return self._rng.choice(tuple(Fate))

    def took_over(self, driver: Simulation) -> None:
        """A driver has the job, and has not begun."""

    def next_job(self) -> Job:
        """The program that the next driver runs."""
        return self.job

    # --- what must hold at the end ------------------------------------------------------------

    def problems(self) -> list[str]:
        problems = [self._problem_of(number) for number in range(len(self.fates))]
        status = self.simulation.master.status
        if status is not JobStatus.FINISHED:
            problems.append(f"the job is {status.name}: {self.simulation.master.error}")
        else:
            # What goes to a client is its driver's; files are everybody's.
            files = [sink for sink in self.program.sinks if sink.mark is not None]
            restarted = any(d.master.progress().restarts for d in self.drivers)
            twice = self.at_least_once or (restarted and not self.checkpointing)
            problems += [sink.differences(self.arrived(sink), twice) for sink in files]
        return [problem for problem in problems if problem is not None]

    def _problem_of(self, number: int) -> str | None:
        """Every driver that lives on finds out that it was superseded.

        One whose last checkpoint was complete before may also finish: all that it does is to commit
        what that covers, as its successor does too.
        """
        master = self.drivers[number].master
        if self.fates[number] is Fate.DEAD or isinstance(master.error, SupersededError):
            return None
        if master.status is JobStatus.FINISHED and number in self._finishing:
            return None
        return f"driver {number + 1} is {master.status.name}: {master.error}"
