"""Stops: a job that is stopped with a savepoint, and goes on from it as another job.

    StopScenario(4711).run().verify()

The program, its settings and its faults are those of `Scenario(seed)`. At random moments somebody
takes savepoints, which must change nothing, or stops the job with one. The next job begins with
it, under another id, at other parallelisms. A stop may fail; then the job goes on. In the end the
files hold every record once.
"""

from __future__ import annotations

from dataclasses import replace

from penstock.checkpoint.store import CheckpointStore
from penstock.common.job_status import JobStatus
from penstock.errors import CheckpointError
from penstock.jobmanager.savepoints import SavepointRequest
from penstock.testing.rescales import RescaleScenario
from penstock.testing.simulator import MAX_TICKS, Simulation

_CLAIMS = 0.3
_SAVEPOINTS = 0.004


class StopScenario(RescaleScenario):
    """A scenario in which the job is stopped and goes on."""

    # The layout changes with a savepoint, which is aligned.
    one_layout = True

    def _run(self) -> None:
        self.paths: list[str] = []
        """The savepoints that the job was stopped with."""
        self.taken: list[str] = []
        """Those that it went on after."""
        stops = self._rng.choice((1, 1, 2, 3))
        simulation = self.simulation
        while True:
            path = self._run_until_stopped(simulation, len(self.paths) < stops)
            if path is None:
                return
            self.paths.append(path)
            simulation = self.simulation = self._next_simulation(path)
            self.drivers.append(simulation)

    def _run_until_stopped(self, simulation: Simulation, stops: bool) -> str | None:
        """Run one job to its end; the savepoint that it was stopped with."""
        answers: list[str] = []

        def answer(path: str | None, error: CheckpointError | None) -> None:
            if path is not None:
                answers.append(path)

        def taken(path: str | None, error: CheckpointError | None) -> None:
            if path is not None:
                self.taken.append(path)

        directory, rng = f"{self.filesystem.uri}/savepoints", self._rng
        due = self._next_takeover()
        simulation.master.start()
        while not simulation.over:
            assert simulation.ticks < MAX_TICKS, f"the job hangs: {simulation.describe()}"
            self._ticks += 1
            if stops and self._ticks >= due:
                due = self._next_takeover()
                simulation.master.savepoint(SavepointRequest(directory, answer, stop=True))
            elif rng.random() < _SAVEPOINTS:
                simulation.master.savepoint(SavepointRequest(directory, taken))
            simulation.tick()
        return answers[0] if answers else None

    def _next_simulation(self, path: str) -> Simulation:
        number = len(self.paths)
        self.filesystem.armed = False
        job = self.next_job()
        job_id = f"{number}{job.id[1:]}"
        store = CheckpointStore(f"{self.filesystem.uri}/checkpoints", job_id)
        claim = self._rng.random() < _CLAIMS
        job = replace(job, id=job_id, store=store, restore_path=path, claim=claim).claimed()
        after = Simulation(f"{self.seed}/job {number}", job, self.rates, self.filesystem)
        after.clock.now = self.simulation.clock.now
        return after

    def problems(self) -> list[str]:
        status = self.simulation.master.status
        if status is not JobStatus.FINISHED:
            return [f"the job is {status.name}: {self.simulation.master.error}"]
        files = [sink for sink in self.program.sinks if sink.mark is not None]
        # Without checkpoints a job starts all over again, and what is out is out.
        restarted = any(driver.master.progress().restarts for driver in self.drivers)
        twice = self.at_least_once or (restarted and not self.checkpointing)
        found = [sink.differences(self.arrived(sink), twice) for sink in files]
        return [problem for problem in found if problem is not None]
