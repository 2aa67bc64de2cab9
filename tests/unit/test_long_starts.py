"""Restoring state and `open()` may take as long as they need: slots say how far they are."""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest

from penstock.common import Configuration, JobStatus
from penstock.datastream.functions import MapFunction, RuntimeContext
from penstock.jobmanager.job import Job
from penstock.network.messages import Deploy
from penstock.testing import local_environment
from penstock.testing.faults import FaultRates, FaultyFileSystem
from penstock.testing.simulator import Simulation

SECOND = 1000
current: list[Simulation] = []
"""The simulation whose time passes while a function is being opened."""


class SlowToOpen(MapFunction):
    """Takes two minutes to open, while the thread for heartbeats goes on."""

    def open(self, runtime_context: RuntimeContext) -> None:
        simulation = current[0]
        for _ in range(240):
            simulation.clock.now += SECOND // 2
            for key, process in list(simulation.processes.items()):
                simulation.master.handle(key[0], process.host.heartbeat())
            simulation.pictures.append(simulation.master.progress())  # type: ignore[attr-defined]
            simulation.master.tick()

    def map(self, value: int) -> int:
        return value


class Looked(Simulation):
    """Keeps the pictures that were made while it ran."""

    def __init__(self, job: Job, filesystem: FaultyFileSystem) -> None:
        super().__init__(seed=1, job=job, filesystem=filesystem)
        self.pictures: list[Any] = []


@pytest.fixture
def job() -> Job:
    with local_environment() as env:
        env.set_parallelism(2)
        env.configure(Configuration().set_string("penstock.start.timeout", "1 h"))
        env.from_collection(range(10)).map(SlowToOpen()).name("slow").print()
        return env._assemble("long")


@pytest.fixture
def filesystem() -> Iterator[FaultyFileSystem]:
    filesystem = FaultyFileSystem(random.Random(1), FaultRates())
    yield filesystem
    filesystem.forget()


def run(job: Job, filesystem: FaultyFileSystem) -> Looked:
    simulation = Looked(job, filesystem)
    current[:] = [simulation]
    simulation.run()
    return simulation


def test_a_slot_that_gives_signs_of_life_may_take_longer_than_slots_have_to_register(
    job: Job, filesystem: FaultyFileSystem
) -> None:
    simulation = run(job, filesystem)
    assert (simulation.master.status, simulation.master.error) == (JobStatus.FINISHED, None)
    assert simulation.master.progress().attempt == 1


def test_the_user_sees_what_a_slot_that_starts_is_busy_with(
    job: Job, filesystem: FaultyFileSystem
) -> None:
    simulation = run(job, filesystem)
    seen = {str(busy) for picture in simulation.pictures for busy in picture.starting.values()}
    assert seen == {"opening 'slow' (1/2)", "opening 'slow' (2/2)"}
    assert simulation.master.progress().starting == {}


def test_there_may_be_a_deadline(job: Job, filesystem: FaultyFileSystem) -> None:
    assert job.timeouts.start == 3600 * SECOND
    job = replace(job, timeouts=replace(job.timeouts, start=60 * SECOND))
    simulation = run(job, filesystem)
    assert simulation.master.status is JobStatus.FAILED
    assert "did not start within 60 s, which is penstock.start.timeout; slot " in str(
        simulation.master.error
    )
    assert "opening 'slow' (" in str(simulation.master.error)


def test_a_slot_that_does_not_begin_is_not_waited_for(
    job: Job, filesystem: FaultyFileSystem
) -> None:
    class Deaf(Looked):
        """A word to the second slot is lost, and it does not know that it should start."""

        def tell(self, launch: int, slot: int, message: Any) -> None:
            if not (isinstance(message, Deploy) and slot == 1):
                super().tell(launch, slot, message)

    simulation = Deaf(job, filesystem)
    current[:] = [simulation]
    assert simulation.run() is JobStatus.FAILED
    assert "a slot did not start its part of the job" in str(simulation.master.error)
