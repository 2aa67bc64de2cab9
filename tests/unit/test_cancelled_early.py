"""A job that is cancelled before its first checkpoint: nothing of it is left."""

from __future__ import annotations

import random
from dataclasses import replace

from penstock.checkpoint.settings import CheckpointSettings
from penstock.checkpoint.store import CheckpointStore
from penstock.common import JobStatus, WatermarkStrategy
from penstock.datastream.connectors.data_generator import DataGeneratorSource
from penstock.datastream.connectors.file_system import FileSink
from penstock.testing import local_environment
from penstock.testing.faults import FaultRates, FaultyFileSystem
from penstock.testing.simulator import Simulation


def test_its_output_and_its_folder_of_checkpoints_are_cleared_away() -> None:
    filesystem = FaultyFileSystem(random.Random(1), FaultRates())
    with local_environment() as env:
        numbers = DataGeneratorSource(str, 10**6, 1000.0)
        stream = env.from_source(numbers, WatermarkStrategy.no_watermarks(), "numbers")
        stream.sink_to(FileSink.for_row_format(f"{filesystem.uri}/out").build())
        job = env._assemble("numbers")
    store = CheckpointStore(f"{filesystem.uri}/checkpoints", job.id)
    settings = CheckpointSettings(interval_ms=3_600_000)
    job = replace(job, store=store, checkpoints=settings).claimed()
    simulation = Simulation(5, job, filesystem=filesystem)
    simulation.master.start()
    while not any(path.startswith("/out/.part-") for path in filesystem.files):
        simulation.tick()
    simulation.master.cancel()
    while not simulation.over:
        simulation.tick()
    assert simulation.master.status is JobStatus.CANCELED
    assert filesystem.files == {}
    filesystem.forget()
