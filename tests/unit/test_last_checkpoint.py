"""The checkpoint at the end of the input, while the storage is away."""

from __future__ import annotations

import itertools
import random
from collections.abc import Iterator
from dataclasses import replace

import pytest

from penstock.checkpoint.settings import CheckpointSettings
from penstock.checkpoint.store import CheckpointStore
from penstock.common import JobStatus
from penstock.common.filesystem import Content
from penstock.errors import StorageError
from penstock.jobmanager.checkpoints import AGAIN_AFTER_MS
from penstock.testing import local_environment
from penstock.testing.faults import FaultRates, FaultyFileSystem
from penstock.testing.simulator import Simulation

TRIES = 5


class AwayStorage(FaultyFileSystem):
    """No checkpoint comes about until so many were tried."""

    def __init__(self) -> None:
        super().__init__(random.Random(1), FaultRates())
        self.tried: dict[str, int] = {}
        """When, by the path of the manifest."""
        self.simulation: Simulation | None = None

    def create(self, path: str, content: Content) -> bool:
        if path.endswith("/_metadata") and self.simulation is not None:
            self.tried.setdefault(path, self.simulation.clock.monotonic_ms())
            if len(self.tried) < TRIES:
                raise StorageError("no answer")
        return super().create(path, content)


@pytest.fixture
def storage() -> Iterator[AwayStorage]:
    made = AwayStorage()
    yield made
    made.forget()


@pytest.mark.parametrize("interval_ms", [3_600_000, None, 400], ids=["an hour", "none", "short"])
def test_it_is_tried_again_after_a_pause_each_time(
    storage: AwayStorage, interval_ms: int | None
) -> None:
    with local_environment() as env:
        env.from_collection(range(10)).print()
        job = env._assemble("bounded")
    store = CheckpointStore(f"{storage.uri}/checkpoints", job.id)
    job = replace(job, store=store, checkpoints=CheckpointSettings(interval_ms=interval_ms))
    simulation = storage.simulation = Simulation(5, job, filesystem=storage)
    simulation.run()
    assert simulation.master.status is JobStatus.FINISHED
    times = list(storage.tried.values())
    assert len(times) == TRIES
    pauses = [later - earlier for earlier, later in itertools.pairwise(times)]
    # A regular one may come before; the storage takes a moment, which differs.
    assert min(pauses) >= min(AGAIN_AFTER_MS, interval_ms or AGAIN_AFTER_MS) / 2
    assert max(pauses) < 10 * AGAIN_AFTER_MS, "it does not wait for the next regular one"
