"""Takeovers: drivers of one job id that die, are paused, or know nothing of each other.

    TakeoverScenario(4711).run().verify()

The program, its settings and its faults are those of `Scenario(seed)`. At random moments another
driver starts under the same job id, on the same storage, with slots of its own. The one before it
is dead by then, or stands still for a while and goes on, or never stops. All that drivers do to the
storage they do call by call, so each may act between two calls of another, or die there. In the end
the newest has finished the job, the others have found out, and the files hold every record once.
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
from penstock.testing.stepped_io import Steps

Moment = tuple[str, str]
"""A call of the storage: how it begins and how it ends."""
WRITES: Moment = ("create", "/_metadata")
"""A checkpoint is about to exist."""
BEGINS: Moment = ("create", ".start")
"""A driver has looked for the newest checkpoint."""
_LONGEST_PAUSE = 3000
_MOST_TICKS = 400_000


class Fate(enum.Enum):
    """What becomes of a driver when the next one starts."""

    DEAD = "dead"
    PAUSED = "paused"
    ALIVE = "alive"


class TakeoverScenario(Scenario):
    """A scenario with several drivers."""

    awakenings: tuple[Moment, ...] = (BEGINS, WRITES)
    """Before which calls of the newest driver one that stands still may go on."""

    def __init__(self, seed: int, rates: FaultRates | None = None) -> None:
        super().__init__(seed, rates)
        self._rng = self.choices("takeovers")
        self.fates: list[Fate] = []
        """Of each driver but the last."""
        self.drivers = [self.simulation]
        self._arriving: Steps | None = None
        """The next driver, on its way to claim the job."""
        self._fate: Fate | None = None
        """What becomes of the driver before it."""
        self._moment: Moment | None = None
        """Before which call the driver is taken by surprise; None: at any time."""
        self._wakes_at: dict[int, Moment | None] = {}
        """Before which call of the newest driver one that stands still goes on."""
        self.simulation.io.stepped = 1.0
        self._paused: dict[int, int] = {}
        self._ticks = 0
        self._try_again = False

    def run(self) -> TakeoverScenario:
        begin_run(self.seed)
        try:
            self._run()
        finally:
            for driver in (*self.drivers, self.simulation):
                driver.end()
            self.filesystem.forget()
        return self

    def _run(self) -> None:
        takeovers = self._rng.choice((1, 1, 2, 3)) if self.checkpointing else 0
        due = self._next_takeover()
        self.simulation.master.start()
        while (running := self._running()) or self._try_again or self._arriving:
            assert self._ticks < _MOST_TICKS, "the drivers hang"
            self._ticks += 1
            if not self._goes_on():
                return
            taken_over = self._arriving is not None or len(self.drivers) > takeovers
            if self._try_again or (self._ticks >= due and not taken_over and self._surprised()):
                due = self._next_takeover()
                self._begin_takeover()
                continue
            able = [number for number in running if self._is_awake(number)]
            # One that claims a job is as quick as one that runs it.
            chosen = self._rng.randrange(len(able) + (self._arriving is not None) or 1)
            if chosen < len(able):
                self.drivers[able[chosen]].tick()
            elif self._arriving is not None and self._step(self._arriving):
                self._end_takeover(self._arriving)

    def _goes_on(self) -> bool:
        """Asked before everything that happens; False if whoever is at work is left alone."""
        return True

    def _surprised(self) -> bool:
        """Whether the driver at work is where the next one is to begin."""
        return self._moment is None or self._is_before(self._moment)

    def _is_awake(self, number: int) -> bool:
        if self._paused.get(number, 0) <= self._ticks:
            return True
        moment, newest = self._wakes_at.get(number), len(self.drivers) - 1
        if moment is None or number == newest or not self._is_before(moment):
            return False
        # Now the newest one stands for a moment, or it would always be the quicker one.
        self._paused[newest] = self._ticks + self._rng.randrange(1, 200)
        self._paused[number] = 0
        return True

    def _is_before(self, moment: Moment) -> bool:
        """Whether the newest driver is about to make such a call."""
        call = self.drivers[-1].io.due
        return call is not None and call.startswith(moment[0]) and call.endswith(moment[1])

    def _next_takeover(self) -> int:
        # Most of what drivers do to each other hangs on what one does about its manifests.
        self._moment = self._rng.choice((None, *self.surprises()))
        return self._ticks + self._rng.randrange(1, self._rng.choice((50, 400, 1500)))

    def _running(self) -> list[int]:
        """The drivers that may still do something."""
        dead = {number for number, fate in enumerate(self.fates) if fate is Fate.DEAD}
        return [n for n, each in enumerate(self.drivers) if not each.over and n not in dead]

    def _take_over(self) -> None:
        """Another driver takes the job over, and nothing happens meanwhile."""
        self._begin_takeover()
        while self._arriving is not None:
            if self._step(self._arriving):
                self._end_takeover(self._arriving)

    def _begin_takeover(self) -> None:
        """Another driver starts, and is about to claim the job."""
        self._try_again = False
        if not self._ending():
            job = self.next_job()
            if self._fate is None:
                self._fate = self.next_fate()
                self._let_stand(len(self.drivers) - 1, self._fate)
            self._arriving = Steps(lambda: self._claim(job), self.filesystem)

    def _let_stand(self, number: int, fate: Fate) -> None:
        """A driver that will be dead is so at once; one that is paused goes on some time."""
        if fate is Fate.DEAD:
            self._paused[number] = _MOST_TICKS
        elif fate is Fate.PAUSED:
            self._paused[number] = self._ticks + self._rng.randrange(1, _LONGEST_PAUSE)
            self._wakes_at[number] = self._rng.choice((None, *self.awakenings))

    def _ending(self) -> bool:
        """Whether a driver has begun to end the job: then its id stands for a new one."""
        before = self.drivers[-1].master
        return before._final is not None and not isinstance(before.error, SupersededError)

    def _claim(self, job: Job) -> Simulation:
        job = replace(job, store=job.store and job.store.claim())
        seed = f"{self.seed}/driver {len(self.drivers) + 1}"
        after = Simulation(seed, job, self.rates, self.filesystem)
        after.io.stepped = 1.0
        return after

    def _step(self, arriving: Steps) -> bool:
        self.filesystem.may_crash = False
        return arriving.step()

    def _end_takeover(self, arrived: Steps) -> None:
        self._arriving = None
        if self._has_ended():
            return
        if isinstance(arrived.error, StorageError):
            # A driver that could not start, and perhaps has taken the job over all the same.
            self._try_again = True
            return
        if arrived.error is not None:
            raise arrived.error
        after: Simulation = arrived.result
        after.clock.now = self.simulation.clock.now
        assert self._fate is not None
        self.fates.append(self._fate)
        self._fate = None
        self.drivers.append(after)
        self.simulation = after
        self.took_over(after)
        after.master.start()

    def surprises(self) -> tuple[Moment, ...]:
        """Before which calls of a driver another one may begin."""
        return WRITES, ("list", f"/{self.job.id}")

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

        One whose last checkpoint was there before may also finish: all that it does is to commit
        what that covers, as its successor does too.
        """
        master = self.drivers[number].master
        if self.fates[number] is Fate.DEAD or isinstance(master.error, SupersededError):
            return None
        if master.status is JobStatus.FINISHED and self._was_complete(number):
            return None
        return f"driver {number + 1} is {master.status.name}: {master.error}"

    # --- what the storage tells ---------------------------------------------------------------

    def _was_complete(self, number: int) -> bool:
        """Whether the last checkpoint of a driver was there before another one had the job."""
        driver = self.drivers[number]
        assert driver.job.store is not None
        root = f"/checkpoints/{driver.job.id}"
        manifest = f"{root}/chk-{driver.master._checkpoints.confirmed}/_metadata"
        claim = f"{root}/generation-{driver.job.store.generation + 1}"
        order = list(self.filesystem.decisions)
        return order.index(manifest) < order.index(claim)

    def _has_ended(self) -> bool:
        """Whether the driver at work has marked the end of the job."""
        store = self.drivers[-1].job.store
        if store is None:
            return self._ending()
        mark = f"/checkpoints/{store.job_id}/generation-{store.generation + 1}"
        return b'"ended":true' in self.filesystem.decisions.get(mark, b"")
