"""Scenarios: one seed decides a program, how it is run, and what goes wrong meanwhile.

    Scenario(4711).run().verify()

`verify` compares what was committed with the program's model and looks for what must not be left
over. The suite runs thousands of scenarios; `replay` tells the story of one.
"""

from __future__ import annotations

import ast
import logging
import os
import pickle
import random
from dataclasses import replace
from typing import Any

from penstock.checkpoint.coordinator import CheckpointMode, CheckpointSettings
from penstock.checkpoint.store import CheckpointStore
from penstock.common.job_status import JobStatus
from penstock.common.settings import RuntimeSettings, StateSettings
from penstock.datastream import StreamExecutionEnvironment
from penstock.datastream.invocation import Invocation, invoked
from penstock.jobmanager.job import Job
from penstock.jobmanager.restart import FixedDelayRestart
from penstock.testing.choices import Choices
from penstock.testing.faults import FaultRates, FaultyFileSystem
from penstock.testing.programs import ExpectedSink, ProgramBuilder
from penstock.testing.simulator import Simulation
from penstock.testing.stages import begin_run

_FAST_DISK = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None
"""Where local databases go: they are many, and none must survive anything."""


class Scenario:
    """A job under the simulator, decided by `seed`; `rates` are those of the seed if not given.

    Some seeds have unaligned checkpoints or a changelog; `unaligned` and `changelog` decide for
    the seed.
    """

    may_repeat = True
    """Whether records may count twice with some seeds, and the program is such that it shows."""
    one_layout = True
    """Whether every attempt has the same graph: an unaligned checkpoint fits no other."""

    def __init__(
        self,
        seed: int,
        rates: FaultRates | None = None,
        unaligned: bool | None = None,
        changelog: bool | None = None,
    ) -> None:
        self.seed = seed
        self._unaligned = unaligned
        self._changelog = changelog
        self.choices = choices = Choices(seed)
        self.checkpointing = choices("checkpointing").random() < 0.94
        repeats = choices("at least once").random() < 0.1
        self.at_least_once = self.checkpointing and self.may_repeat and repeats
        self.rates = rates or _rates(choices)
        self.filesystem = FaultyFileSystem(choices("storage"), self.rates)
        # A seed decides everything, so a configuration file nearby must decide nothing.
        with invoked(Invocation(file={})):
            env = StreamExecutionEnvironment()
        if choices("chaining").random() < 0.15:
            env.disable_operator_chaining()
        env.set_buffer_timeout(choices("buffer timeout").choice((0, 5, 100)))
        env.set_max_parallelism(choices("max parallelism").choice((4, 128, 128)))
        chance = choices("program")
        self.program = self.builder(chance, env)
        self.build(self.program)
        self.job = self._job(env._assemble(f"seed {seed}")).claimed()
        self.simulation = Simulation(seed, self.job, self.rates, self.filesystem)
        cancelling = choices("cancelling")
        self.cancel_at = cancelling.randrange(1, 1500) if cancelling.random() < 0.04 else None

    def builder(self, chance: random.Random, env: StreamExecutionEnvironment) -> ProgramBuilder:
        """What builds the program."""
        return ProgramBuilder(chance, env, self.filesystem.uri, self.seed, self.at_least_once)

    def build(self, program: ProgramBuilder) -> None:
        """Say what the program is."""
        program.build()

    def _job(self, job: Job) -> Job:
        choices = self.choices
        job_id = f"{self.seed:032x}"
        mode = CheckpointMode.AT_LEAST_ONCE if self.at_least_once else CheckpointMode.EXACTLY_ONCE
        checkpoints, store = CheckpointSettings(), None
        if self.checkpointing:
            interval = choices("interval").choice((5, 5, 10, 20, 100))
            timeout = choices("timeout").choice((2000, 5000, 600_000))
            checkpoints = CheckpointSettings(
                interval,
                mode,
                timeout,
                retained=choices("retained").randrange(1, 4),
                min_pause_ms=choices("pause").choice((0, 0, 0, 15)),
                max_concurrent=choices("concurrent").choice((1, 1, 1, 2, 4)),
                overtakes_after_ms=self._overtakes_after_ms(),
                orphan_grace_ms=self.grace_ms(choices("grace")),
            )
            store = CheckpointStore(f"{self.filesystem.uri}/checkpoints", job_id)
        settings = RuntimeSettings(
            exactly_once=not self.at_least_once,
            object_reuse=not self.program.mutates and choices("reuse").random() < 0.3,
            buffer_timeout_ms=job.settings.buffer_timeout_ms,
            credits=choices("credits").randrange(1, 5),
            buffer_records=choices("buffers").choice((1, 2, 5, 20, 256)),
            step_records=choices("steps").choice((1, 2, 5, 64)),
            incremental=choices("incremental").random() < 0.9,
            changelog_ms=self._changelog_ms(),
            compaction_fanout=choices("fanout").choice((2, 2, 3, 8)),
            state=_state(choices("backend")),
        )
        restart = FixedDelayRestart(2**31, choices("restart").choice((0, 10, 1000)))
        return replace(
            job,
            id=job_id,
            settings=settings,
            checkpoints=checkpoints,
            store=store,
            restart=restart,
        )

    def _changelog_ms(self) -> int | None:
        """How often changes of state are logged."""
        rng = self.choices("changelog")
        chosen, every_ms = rng.random() < 0.25, rng.choice((1, 5, 20))
        logs = chosen if self._changelog is None else self._changelog
        return every_ms if logs else None

    def _overtakes_after_ms(self) -> int | None:
        """When checkpoints become unaligned."""
        rng = self.choices("unaligned")
        chosen, after_ms = rng.random() < 0.25, rng.choice((0, 0, 0, 3, 40))
        unaligned = chosen if self._unaligned is None else self._unaligned
        possible = self.one_layout and not self.at_least_once
        return after_ms if unaligned and possible else None

    def grace_ms(self, rng: random.Random) -> int:
        """For how long orphans are left alone; none is needed for a job to be safe."""
        return rng.choice((0, 0, 40, 400))

    def run(self) -> Scenario:
        """Run it to its end."""
        begin_run(self.seed)
        try:
            self.simulation.run(self.cancel_at)
        finally:
            self.simulation.end()
            self.filesystem.forget()
        return self

    # --- what must hold at the end ------------------------------------------------------------

    def verify(self) -> None:
        """AssertionError unless everything is as it must be."""
        problems = self.problems()
        assert not problems, f"seed {self.seed}: " + "; ".join(problems)

    def problems(self) -> list[str]:
        status = self.simulation.master.status
        if self.cancel_at is not None and status is JobStatus.CANCELED:
            return self._after_cancel()
        if status is not JobStatus.FINISHED:
            return [f"the job is {status.name}: {self.simulation.master.error}"]
        # Without checkpoints a job starts all over again, and what is out is out.
        restarted = self.simulation.master.progress().restarts > 0
        at_least_once = self.at_least_once or (restarted and not self.checkpointing)
        found = [s.differences(self.arrived(s), at_least_once) for s in self.program.sinks]
        problems = [problem for problem in found if problem is not None]
        return problems + self._left_over() + self._without_reason()

    def _after_cancel(self) -> list[str]:
        """Whatever is out must be part of what would have come out."""
        return [
            f"{sink.uid}: {surplus}"
            for sink in self.program.sinks
            if sink.branch.add_up is None and not self.at_least_once and self.checkpointing
            for surplus in [sink.surplus(self.arrived(sink))]
            if surplus
        ]

    def arrived(self, sink: ExpectedSink) -> list[list[Any]]:
        """The records that are out, by subtask of the sink, in their order."""
        if sink.mark is None:
            by_subtask = self.simulation.delivered.get(sink.uid, {})
            return [[pickle.loads(value) for value in by_subtask[i]] for i in sorted(by_subtask)]
        subtasks: dict[int, list[Any]] = {}
        for _, subtask, _, data in sorted(self._committed()):
            lines = (line for line in data.splitlines() if line.startswith(sink.mark))
            values = (ast.literal_eval(line.removeprefix(sink.mark)) for line in lines)
            subtasks.setdefault(subtask, []).extend(values)
        return list(subtasks.values())

    def _committed(self) -> list[tuple[int, int, int, str]]:
        """(attempt, subtask, number, content) of every visible file."""
        files = []
        for path, data in self.filesystem.files.items():
            name = path.rsplit("/", 1)[1]
            if path.startswith("/out/") and not name.startswith("."):
                attempt, subtask, count = name.split("-")[-3:]
                files.append((int(attempt), int(subtask), int(count), data.decode()))
        return files

    def _left_over(self) -> list[str]:
        # What lands after everything was deleted is there, and nobody is left to see it.
        files = self.filesystem.files.keys() - self.filesystem.came_late
        unfinished = [path for path in files if path.startswith("/out/.")]
        checkpoints = [path for path in files if path.startswith("/checkpoints/")]
        if self.filesystem.failed_cleanups:
            # Cleaning up was tried and failed, which is logged and fails no job.
            return []
        return [f"{path} is left over" for path in sorted(unfinished + checkpoints)]

    def _without_reason(self) -> list[str]:
        """Where nothing goes wrong, no checkpoint may fail."""
        progress = self.simulation.master.progress()
        trouble = self.simulation.faults or progress.restarts
        hasty = self.job.checkpoints.timeout_ms < 60_000
        # One of several under way may be overtaken by the next.
        several = self.job.checkpoints.max_concurrent > 1
        if trouble or hasty or several or not progress.failed_checkpoints:
            return []
        return [f"{progress.failed_checkpoints} checkpoints failed for no reason"]

    # --- the story ----------------------------------------------------------------------------

    def story(self) -> str:
        """The program, the settings and what happened, for people to read."""
        simulation = self.simulation
        progress = simulation.master.progress()
        lines = [f"seed {self.seed}", "", "the program:", *(f"  {x}" for x in self.program.lines)]
        lines += ["", "as a graph:", self.job.graph.job.describe(), ""]
        lines += [f"settings: {self.job.settings}", f"checkpoints: {self.job.checkpoints}"]
        lines += [f"faults to come: {self.rates}", f"cancel at: {self.cancel_at}", ""]
        lines += ["what went wrong:", *(f"  {fault}" for fault in simulation.faults), ""]
        lines += [f"statuses: {', '.join(status.name for status in simulation.statuses)}"]
        completed, failed = progress.completed_checkpoints, progress.failed_checkpoints
        lines += [f"{simulation.ticks} ticks, {progress.attempt} attempts"]
        lines += [f"{completed} checkpoints completed, {failed} failed"]
        lines += [f"trace: {len(simulation.trace)} events, digest {simulation.digest()}"]
        return "\n".join(lines)


class UpkeepScenario(Scenario):
    """A scenario in which what goes wrong goes wrong where segments are merged and deleted."""

    def __init__(self, seed: int, rates: FaultRates | None = None) -> None:
        super().__init__(seed, rates or FaultRates(upkeep=0.3, crash_soon=0.05, budget=12))


def _state(rng: random.Random) -> StateSettings:
    # With no memory nearly every access goes to the database.
    rocksdb = StateSettings("rocksdb", _FAST_DISK, merges_files=False)
    # And with files in checkpoints from the first entry on.
    files = replace(rocksdb, managed=0, files_from=0)
    return rng.choice((StateSettings(), rocksdb, replace(rocksdb, managed=0), files))


def _rates(choices: Choices) -> FaultRates:
    if choices("quiet").random() < 0.1:
        return FaultRates()

    def sometimes(fault: str, rate: float) -> float:
        return rate * choices(fault).choice((0.0, 0.0, 1.0, 3.0))

    crash_at = choices("crash at")
    return FaultRates(
        storage_error=sometimes("storage error", 0.01),
        manifest_error=sometimes("manifest error", 0.1),
        upkeep=choices("upkeep").choice((0.0, 0.3, 0.6)),
        twice=choices("twice").choice((0.0, 0.0, 0.02, 0.1)),
        storage_crash=sometimes("storage crash", 0.01),
        crash_at=crash_at.randrange(1, 100) if crash_at.random() < 0.3 else None,
        expiry=sometimes("expiry", 0.002),
        crash=sometimes("crash", 0.0005),
        crash_soon=choices("crash soon").choice((0.0, 0.1, 0.3)),
        freeze=sometimes("freeze", 0.0003),
        lost_frame=sometimes("lost frame", 0.001),
        slow=sometimes("slow", 0.001),
        budget=choices("budget").choice((1, 2, 3, 5, 8, 12)),
    )


log = logging.getLogger(__name__)


MANY_RESTORES = FaultRates(crash_soon=0.2, crash=0.001, expiry=0.002, budget=10)


def unaligned_scenario(seed: int) -> Scenario:
    """A job with unaligned checkpoints; every other seed restores many times."""
    return Scenario(seed, MANY_RESTORES if seed % 2 else None, unaligned=True)


def changelog_scenario(seed: int) -> Scenario:
    """A job with a changelog; every other seed restores many times."""
    return Scenario(seed, MANY_RESTORES if seed % 2 else None, changelog=True)


def replay(scenario: Scenario) -> int:
    """Run a scenario with all its log, and tell its story; 1 if something was wrong."""
    logging.basicConfig(level=logging.WARNING, format="  log: %(message)s")
    problems: list[str]
    try:
        problems = scenario.run().problems()
    except Exception as error:
        log.exception("the simulation ended")
        problems = [f"{type(error).__name__}: {error}"]
    print(scenario.story())
    print("\n".join(["", *(f"WRONG: {p}" for p in problems)]) if problems else "\nall is well")
    return 1 if problems else 0
