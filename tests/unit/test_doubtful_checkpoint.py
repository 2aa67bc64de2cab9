"""A checkpoint in doubt: the storage did not answer, and may still bring its manifest about."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from dataclasses import replace

import pytest

from penstock.checkpoint.settings import CheckpointSettings
from penstock.checkpoint.store import CheckpointStore
from penstock.common import WatermarkStrategy
from penstock.common.filesystem import Content, parts_of
from penstock.datastream.connectors.data_generator import DataGeneratorSource
from penstock.errors import StorageError
from penstock.testing import local_environment
from penstock.testing.faults import FaultRates, FaultyFileSystem
from penstock.testing.simulator import Simulation

GRACE_MS = 200


class SlowStorage(FaultyFileSystem):
    """When it is told so, manifests and tombstones are not written, and may be later."""

    def __init__(self) -> None:
        super().__init__(random.Random(1), FaultRates())
        self.silent = False
        self.unwritten: dict[str, bytes] = {}
        """Manifests by path."""

    def create(self, path: str, content: Content) -> bool:
        if self.silent and path.endswith("/_metadata"):
            # The manifest comes first, and then the tombstone that should replace it.
            self.unwritten.setdefault(path, b"".join(parts_of(content)))
            raise StorageError("no answer")
        return super().create(path, content)


@pytest.fixture
def storage() -> Iterator[SlowStorage]:
    made = SlowStorage()
    yield made
    made.forget()


@pytest.fixture
def simulation(storage: SlowStorage) -> Simulation:
    """A job with state and without an end that takes checkpoints and sweeps what is left over."""
    with local_environment() as env:
        numbers = DataGeneratorSource(lambda n: n, 10**6, 1000.0)
        stream = env.from_source(numbers, WatermarkStrategy.no_watermarks(), "numbers")
        stream.key_by(lambda n: n % 3).reduce(lambda a, b: a + b).filter(lambda _: False).print()
        job = env._assemble("sums")
    store = CheckpointStore(f"{storage.uri}/checkpoints", job.id)
    settings = CheckpointSettings(interval_ms=50, orphan_grace_ms=GRACE_MS)
    job = replace(job, store=store, checkpoints=settings)
    simulation = Simulation(5, job, filesystem=storage)
    simulation.master.start()
    return simulation


def run_until(simulation: Simulation, holds: Callable[[], bool]) -> None:
    while not holds():
        simulation.tick()


def test_its_segments_are_not_swept(simulation: Simulation, storage: SlowStorage) -> None:
    store, master = simulation.job.store, simulation.master
    assert store is not None
    run_until(simulation, lambda: master.progress().completed_checkpoints == 2)
    storage.silent = True
    run_until(simulation, lambda: master.progress().failed_checkpoints == 1)
    end = simulation.clock.now + 5 * GRACE_MS
    run_until(simulation, lambda: simulation.clock.now > end)

    storage.silent = False
    path, manifest = next(iter(storage.unwritten.items()))
    assert storage.create(path, manifest), "at last"
    newest, damaged = store.newest()
    assert damaged == [], "all of its segments are there"
    assert newest is not None and f"/chk-{newest.checkpoint}/" in path
