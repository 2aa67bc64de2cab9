"""A program with kept files: how it is run up to a snapshot, and from one to the end."""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from kept_programs.ends import INPUT, WRITTEN, Numbers, Results
from penstock.common import Configuration, WatermarkStrategy
from penstock.connectors.sink import Sink
from penstock.datastream import DataStream
from penstock.testing import local_environment
from penstock.testing.local_environment import LocalEnvironment

JOB = "0123456789abcdef0123456789abcdef"
STORAGE = "storage"
"""In a kept folder: what the job had written to the file system of the simulator."""


@dataclass(frozen=True)
class Program:
    """What is built upon the numbers, and the right results of all numbers below a bound."""

    name: str
    build: Callable[[DataStream], DataStream]
    model: Callable[[range], Iterable[Any]]
    before: int = 50
    after: int = 90
    settings: Mapping[str, str] = field(default_factory=dict)
    checkpoints: tuple[int, ...] = ()
    """A retained checkpoint is kept, the last of those after so many numbers; none: a savepoint."""
    parallelisms: tuple[int, ...] = (1, 2, 3)
    """What a restore is tried with; it is 2 before the snapshot."""
    waits_for: int = 0
    """The input ends when there are so many results: those that the clock brings about."""
    uids: bool = True
    """Whether source and sink have uids; otherwise theirs are generated."""
    sink: Callable[[LocalEnvironment], Sink] | None = None
    results: Callable[[LocalEnvironment], list[str]] | None = None
    good: Callable[[Path], bool] = lambda snapshot: True
    """Whether a snapshot holds what it is to be kept for; another seed is tried otherwise."""

    def right_results(self) -> list[str]:
        return sorted(map(repr, self.model(range(self.after))))

    def start(self, env: LocalEnvironment, parallelism: int) -> Any:
        env.set_parallelism(parallelism)
        timed = WatermarkStrategy.no_watermarks().with_timestamp_assigner(at)
        numbers = env.from_source(Numbers(), timed, "numbers")
        sink = Results() if self.sink is None else self.sink(env)
        if self.uids:
            self.build(numbers.uid("numbers")).sink_to(sink).uid("results")
        else:
            self.build(numbers).sink_to(sink)
        return env.execute_async(self.name)

    def written(self, env: LocalEnvironment) -> list[str]:
        return sorted(WRITTEN.values() if self.results is None else self.results(env))


PROGRAMS: dict[str, Program] = {}


def program(
    model: Callable[[range], Iterable[Any]], **more: Any
) -> Callable[[Callable[[DataStream], DataStream]], Callable[[DataStream], DataStream]]:
    """Registers a program under the name of the function that builds it."""

    def register(build: Callable[[DataStream], DataStream]) -> Callable[[DataStream], DataStream]:
        name = build.__name__.replace("_", "-")
        PROGRAMS[name] = Program(name, build, model, **more)
        return build

    return register


def at(number: int, _: int | None) -> int:
    """When a number happens: ten milliseconds after the one before."""
    return 10 * number


def make(program: Program, folder: Path) -> None:
    """Write the snapshot of a program to `folder`, and what else a restore needs."""
    for seed in range(100):
        _make(program, folder, seed)
        if program.good(snapshot_in(folder)):
            return
        shutil.rmtree(folder)
    raise AssertionError(f"no seed gives a snapshot that is good for {program.name}")


def _make(program: Program, folder: Path, seed: int) -> None:
    values = {"pipeline.jobid": JOB, **program.settings}
    if program.checkpoints:
        values["execution.checkpointing.dir"] = (folder / "checkpoints").absolute().as_uri()
        values["execution.checkpointing.interval"] = "10 d"
        values["execution.checkpointing.externalized-checkpoint-retention"] = (
            "RETAIN_ON_CANCELLATION"
        )
    with local_environment(seed, configuration=Configuration.from_dict(values)) as env:
        INPUT.begin(below=(*program.checkpoints, program.before)[0])
        job = program.start(env, parallelism=2)
        if program.checkpoints:
            for below in program.checkpoints:
                INPUT.go_on(below)
                _when_read(job)
                job.trigger_checkpoint().result(300)
        else:
            _when_read(job)
            job.trigger_savepoint(str(folder)).result(300)
        job.cancel().result(300)
        for path, data in env.filesystem.files.items():
            kept = folder / STORAGE / path.lstrip("/")
            kept.parent.mkdir(parents=True, exist_ok=True)
            kept.write_bytes(data)
    if not program.checkpoints:
        [taken] = folder.glob("savepoint-*")
        taken.rename(folder / "savepoint")


def _when_read(job: Any) -> None:
    while not INPUT.read_all():
        assert not job.get_job_execution_result().done(), "it ended before that"
        time.sleep(0.001)


def snapshot_in(folder: Path) -> Path:
    """The one snapshot in a kept folder: a savepoint or a retained checkpoint."""
    [metadata] = folder.glob("**/_metadata")
    return metadata.parent


def restored(program: Program, folder: Path, parallelism: int) -> list[str]:
    """The results of a program that goes on from the files in `folder` to the end.

    It takes checkpoints on the way, which build upon what it was restored from.
    """
    path = str(snapshot_in(folder))
    values = {**program.settings, "execution.state-recovery.path": path}
    values["execution.checkpointing.interval"] = "50 ms"
    values["restart-strategy.type"] = "none"
    with local_environment(parallelism, configuration=Configuration.from_dict(values)) as env:
        checkpoints = f"{env.storage}/checkpoints"
        env._configuration.set_string("execution.checkpointing.dir", checkpoints)
        storage = folder / STORAGE
        for kept in storage.glob("**/*"):
            if kept.is_file():
                name = "/" + kept.relative_to(storage).as_posix()
                env.filesystem.files[name] = kept.read_bytes()
        INPUT.begin(program.after, ends=True, waits_for=program.waits_for)
        program.start(env, parallelism).get_job_execution_result().result(300)
        assert env.simulation.restored, "it began anew"
        return program.written(env)
