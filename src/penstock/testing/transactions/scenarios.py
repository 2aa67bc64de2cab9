"""Jobs with transactions: whatever happens to them, every record is visible once, or none is twice.

    SinkScenario(4711).run().verify()

The program, its settings and its faults are those of `Scenario(seed)`, and its sinks write to a
simulated broker in transactions. The seed also decides, for each job:

* For some time no checkpoint completes, perhaps for longer than transactions stay open.
* Savepoints are taken. The job may be stopped with one; or it is killed, and goes on from one of
  the savepoints, perhaps an old one and after the broker has forgotten all ids. Then it is another
  job, and counts on what was visible at the savepoint.
* Other drivers take the job over, as in `TakeoverScenario`, perhaps after a long time.

In the end every record is visible once. Only if the broker has aborted a transaction that a
checkpoint covers, or nobody can know, the job may have stopped instead, and then no record is
visible twice.
"""

from __future__ import annotations

import pickle
import random
from dataclasses import replace
from typing import Any

from penstock.checkpoint.metadata import decode_metadata
from penstock.checkpoint.savepoints import open_snapshot
from penstock.checkpoint.store import CheckpointStore
from penstock.common.job_status import JobStatus
from penstock.connectors.kafka.transactions import job_of
from penstock.datastream import StreamExecutionEnvironment
from penstock.errors import CheckpointError, LostOutputError
from penstock.jobmanager.job import Job
from penstock.jobmanager.savepoints import SavepointRequest
from penstock.testing.faults import FaultRates
from penstock.testing.programs import ExpectedSink, ProgramBuilder
from penstock.testing.simulator import Simulation
from penstock.testing.takeovers import Fate, Moment, TakeoverScenario
from penstock.testing.transactions.broker import BrokerRates, Key, SimulatedBroker, key_of
from penstock.testing.transactions.programs import TopicProgramBuilder

EXPIRATION_MS = 7 * 24 * 3_600_000
COMMITS: Moment = ("ask the broker: end", "")
"""A transaction is about to be committed."""
SETTLES: Moment = ("ask the broker: list", "")
"""A driver is about to look for the transactions of others."""
MARKS: Moment = ("create", "/_committed")
"""All is committed, and nobody knows yet."""
_SAVEPOINTS = 0.01


class SinkScenario(TakeoverScenario):
    """A scenario with transactional sinks."""

    may_repeat = False
    awakenings = (*TakeoverScenario.awakenings, COMMITS)

    def __init__(self, seed: int, rates: FaultRates | None = None) -> None:
        super().__init__(seed, rates)
        self.broker.clocks.append(self.simulation.clock)
        self._acts = self.choices("acts of the user")
        self.jobs = [self.job.id]
        self.savepoints: dict[str, frozenset[Key]] = {}
        """The savepoints of all jobs, and what was visible when they were taken."""
        self.lost: LostOutputError | None = None
        """Why the last job stopped, if it did."""
        self.wrong: list[str] = []
        """What was wrong with jobs before the last."""
        self.barred = 0
        """How often no checkpoint completed for some time."""
        self.gaps: list[int] = []
        """How long nothing was at work, each time when a driver or a job began."""
        self._counts: frozenset[Key] = frozenset()
        """What the present job counts on."""
        self._barred_until = 0
        self._pace = self.simulation.pace
        self._due: dict[str, int] = {}
        self._stopped_with: str | None = None
        self._killed = False

    def builder(self, chance: random.Random, env: StreamExecutionEnvironment) -> ProgramBuilder:
        choices = self.choices
        rates = BrokerRates(
            twice=choices("broker twice").choice((0.0, 0.0, 0.05, 0.2)),
            away=choices("broker away").choice((0.0, 0.0, 0.01, 0.05)),
            crash=choices("broker crash").choice((0.0, 0.0, 0.01, 0.05)),
        )
        self.broker = SimulatedBroker(choices("broker"), rates, self.filesystem, EXPIRATION_MS)
        self.timeout_ms = choices("transaction timeout").choice((8_000, 20_000, 60_000))
        return TopicProgramBuilder(
            *(self.broker, self.timeout_ms, chance, env, self.filesystem.uri),
            *(self.seed, self.at_least_once),
        )

    def _job(self, job: Job) -> Job:
        job = super()._job(job)
        timeout_ms = self.choices("checkpoint timeout").choice((2_000, 5_000))
        settings = replace(job.settings, checkpoint_timeout_ms=timeout_ms)
        checkpoints = replace(job.checkpoints, timeout_ms=timeout_ms)
        return replace(job, settings=settings, checkpoints=checkpoints)

    # --- running ------------------------------------------------------------------------------

    def run(self) -> SinkScenario:
        try:
            super().run()
        finally:
            self.broker.forget()
        return self

    def _run(self) -> None:
        jobs = self._acts.choice((1, 1, 2, 3)) if self.checkpointing else 1
        while True:
            self._plan(ends=len(self.jobs) < jobs)
            super()._run()
            path = self._next_path()
            if path is None:
                return
            if not self._killed:
                self.wrong += self._problems_of_drivers()
            self._begin_job(path)

    def _plan(self, ends: bool) -> None:
        """Decide when the user acts on the job that begins now."""
        rng = self._acts
        self._due = {}
        for act, chance in (("bar", 0.4), ("stop", 0.6 * ends), ("kill", 0.4 * ends)):
            if rng.random() < chance:
                self._due[act] = self._ticks + rng.randrange(1, rng.choice((100, 300, 800)))

    def _goes_on(self) -> bool:
        rng, newest = self._acts, self.drivers[-1]
        if self._is_due("bar"):
            self.barred += 1
            longest = rng.choice((1_000, 10_000, 25_000))
            self._barred_until = newest.clock.now + rng.randrange(1, longest)
        if newest.clock.now < self._barred_until:
            # Little else happens meanwhile that would matter.
            newest.pace = 0.25
            self._give_up_all(newest)
        else:
            newest.pace = self._pace
        if self.checkpointing and rng.random() < _SAVEPOINTS:
            self._take_savepoint(newest, stop=False)
        if self._is_due("stop"):
            # It may fail: then it is tried again.
            self._due["stop"] = self._ticks + 300
            self._take_savepoint(newest, stop=True)
        self._killed = bool(self.savepoints) and self._is_due("kill")
        return not self._killed

    def _is_due(self, act: str) -> bool:
        if self._ticks < self._due.get(act, self._ticks + 1):
            return False
        del self._due[act]
        return True

    def _give_up_all(self, driver: Simulation) -> None:
        """At the last moment: then most sinks have prepared their output."""
        checkpoints = driver.master._checkpoints
        for pending in list(checkpoints._coordinator.pending.values()):
            if len(pending.waiting) == 1:
                checkpoints.given_up(pending.id, "simulated: none completes now")

    def _take_savepoint(self, driver: Simulation, stop: bool) -> None:
        def answer(path: str | None, error: CheckpointError | None) -> None:
            if path is not None:
                self._taken(driver, path)
                if stop:
                    self._stopped_with = path

        directory = f"{self.filesystem.uri}/savepoints"
        driver.master.savepoint(SavepointRequest(directory, answer, stop=stop))

    def _taken(self, driver: Simulation, path: str) -> None:
        """Note what is visible, if nothing is that the savepoint does not cover."""
        armed, self.filesystem.armed = self.filesystem.armed, False
        checkpoint = open_snapshot(path).metadata.checkpoint
        self.filesystem.armed = armed
        alone = driver is self.drivers[-1] and self._arriving is None
        if alone and checkpoint == driver.master._checkpoints.confirmed:
            self.savepoints[path] = self._visible()

    def _visible(self) -> frozenset[Key]:
        """The transactions that the present job has made visible, or counts on."""
        present = self.jobs[-1]
        mine = (key for key in self.broker.committed if job_of(key.id, _topic(key)) == present)
        return self._counts.union(mine)

    def _next_path(self) -> str | None:
        """The savepoint that the next job begins with."""
        stopped, self._stopped_with = self._stopped_with, None
        if self._killed:
            return self._acts.choice(sorted(self.savepoints))
        finished = self.simulation.master.status is JobStatus.FINISHED
        return stopped if finished and stopped in self.savepoints else None

    def _begin_job(self, path: str) -> None:
        for driver in self.drivers:
            driver.end()
        self._arriving, self._try_again, self._fate = None, False, None
        number = len(self.jobs)
        job_id = f"{number}{self.job.id[1:]}"
        self.filesystem.armed = False
        store = CheckpointStore(f"{self.filesystem.uri}/checkpoints", job_id)
        job = replace(self.job, id=job_id, store=store, restore_path=path)
        self.job = job.claimed()
        self.jobs.append(job_id)
        self._counts = self.savepoints[path]
        after = Simulation(f"{self.seed}/job {number}", self.job, self.rates, self.filesystem)
        after.io.stepped = 1.0
        after.clock.now = self.broker.now + self._gap()
        self.broker.clocks = [after.clock]
        self.simulation, self.drivers, self.fates = after, [after], []
        self._paused, self._wakes_at = {}, {}

    def surprises(self) -> tuple[Moment, ...]:
        return (*super().surprises(), COMMITS, SETTLES, MARKS)

    def took_over(self, driver: Simulation) -> None:
        if self.fates[-1] is Fate.DEAD:
            driver.clock.now += self._gap()
        self.broker.clocks.append(driver.clock)

    def _gap(self) -> int:
        """How long nobody is at work."""
        gap = self._acts.choice((0, 0, 0, 2 * self.timeout_ms, 2 * EXPIRATION_MS))
        self.gaps.append(gap)
        return gap

    # --- what must hold at the end ------------------------------------------------------------

    def problems(self) -> list[str]:
        problems = [*self.wrong, *self.broker.wrong, *self._problems_of_drivers()]
        problems += self._covered_in_vain()
        master = self.simulation.master
        if isinstance(master.error, LostOutputError) and master.status is JobStatus.FAILED:
            self.lost = master.error
            return problems + self._problems_of_a_loss(master.error)
        if master.status is not JobStatus.FINISHED:
            return [*problems, f"the job is {master.status.name}: {master.error}"]
        restarted = any(driver.master.progress().restarts for driver in self.drivers)
        twice = restarted and not self.checkpointing
        found = [sink.differences(self.arrived(sink), twice) for sink in self.program.sinks]
        return problems + [problem for problem in found if problem is not None]

    def _covered_in_vain(self) -> list[str]:
        """Checkpoints whose output was gone before they were begun: it must be asked for."""
        covered: set[Key] = set()
        wrong = []
        for path, manifest in self.filesystem.decisions.items():
            metadata = decode_metadata(manifest, path) if path.endswith("/_metadata") else None
            if metadata is None:
                continue
            begun = metadata.timestamp - self.job.checkpoints.timeout_ms
            keys = {key_of(each) for values in metadata.committables.values() for each in values}
            gone = {key for key in keys - covered if self.broker.timed_out.get(key, begun) < begun}
            wrong += [f"{path} covers {key.id}, which had timed out before" for key in gone]
            covered |= keys
        return wrong

    def _problems_of_drivers(self) -> list[str]:
        found = [self._problem_of(number) for number in range(len(self.fates))]
        return [problem for problem in found if problem is not None]

    def _problems_of_a_loss(self, error: LostOutputError) -> list[str]:
        """Whether the job was right to stop: it could not know better, and nothing is out twice."""
        lost = [key for key in map(key_of, error.lost) if key in self.broker.committed]
        wrong = [
            f"{key.id} is committed and called lost"
            for key in lost
            if self._is_marked() or self.broker.knows(key)
        ]
        for sink in self.program.sinks:
            surplus = sink.surplus(self.arrived(sink))
            if surplus and sink.branch.add_up is None:
                wrong.append(f"{sink.uid}: {surplus}")
        return wrong

    def _is_marked(self) -> bool:
        """Whether the checkpoint that the job stopped at says that all is committed."""
        attempt = self.simulation.master._attempt
        mark = f"/checkpoints/{self.job.id}/chk-{attempt.start.checkpoint}/_committed"
        return mark in self.filesystem.files

    def arrived(self, sink: ExpectedSink) -> list[list[Any]]:
        visible = self._visible()
        messages = (
            message
            for key, messages in self.broker.committed.items()
            if key in visible
            for message in messages
            if message.topic == sink.uid
        )
        return [[pickle.loads(message.value) for message in messages]]


def _topic(key: Key) -> str:
    return key.id.split("/", 1)[0]
