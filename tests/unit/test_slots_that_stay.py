"""Slots that are told to leave and do not: when the cluster is asked to end them."""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest

from penstock.checkpoint.settings import CheckpointSettings
from penstock.checkpoint.store import CheckpointStore
from penstock.common import JobStatus, WatermarkStrategy
from penstock.datastream.connectors.data_generator import DataGeneratorSource
from penstock.jobmanager.job import Job
from penstock.jobmanager.live_rescale import RescaleRequest
from penstock.network.messages import Leave
from penstock.testing import local_environment
from penstock.testing.faults import FaultRates, FaultyFileSystem
from penstock.testing.simulator import Simulation


class SlotsThatStay(Simulation):
    """Nobody hears that it should leave."""

    def __init__(self, job: Job, filesystem: FaultyFileSystem) -> None:
        super().__init__(seed=1, job=job, filesystem=filesystem)
        self.told_ms: dict[int, int] = {}
        """When the slots of each launch were last told to leave."""
        self.ended: list[tuple[int, int, int]] = []
        """Launches that the cluster was asked to end: which, how long after the slots were told,
        and after how many milliseconds more it is to do so."""

    def tell(self, launch: int, slot: int, message: Any) -> None:
        if isinstance(message, Leave):
            self.told_ms[launch] = self.clock.now
        else:
            super().tell(launch, slot, message)

    def cancel_launch(self, launch: int, after_ms: int) -> None:
        self.ended.append((launch, self.clock.now - self.told_ms[launch], after_ms))
        super().cancel_launch(launch, after_ms)


@pytest.fixture
def simulation() -> Iterator[SlotsThatStay]:
    """A job of two slots that is over after a second."""
    filesystem = FaultyFileSystem(random.Random(1), FaultRates())
    with local_environment() as env:
        env.set_parallelism(2)
        numbers = DataGeneratorSource(lambda n: n, 100, 100.0)
        stream = env.from_source(numbers, WatermarkStrategy.no_watermarks(), "numbers")
        stream.key_by(lambda n: n % 2).reduce(lambda a, b: a + b).print()
        job = env._assemble("numbers")
    store = CheckpointStore(f"{filesystem.uri}/checkpoints", job.id)
    job = replace(job, store=store, checkpoints=CheckpointSettings(interval_ms=50))
    yield SlotsThatStay(job, filesystem)
    filesystem.forget()


def test_when_a_job_is_finished_they_have_time_and_are_then_ended(
    simulation: SlotsThatStay,
) -> None:
    assert simulation.run() is JobStatus.FINISHED
    assert simulation.ended == [(1, simulation.job.timeouts.finish, 0)]


def test_when_a_job_is_cancelled_they_have_a_third_of_its_time_to_stop(
    simulation: SlotsThatStay,
) -> None:
    assert simulation.run(cancel_at=50) is JobStatus.CANCELED
    assert simulation.ended == [(1, 0, simulation.job.timeouts.stop // 3)]


def test_when_a_job_is_rescaled_they_have_time_and_are_then_ended(
    simulation: SlotsThatStay,
) -> None:
    answers: list[Exception | None] = []
    simulation.master.rescale(RescaleRequest(simulation.job.at(1), answers.append))
    assert simulation.run() is JobStatus.FINISHED
    assert answers == [None]
    timeouts = simulation.job.timeouts
    assert simulation.ended == [(1, timeouts.stop, 0), (2, timeouts.finish, 0)]
