"""A job that is cancelled when all of its output is committed: it is finished all the same."""

from __future__ import annotations

import random
from dataclasses import replace

import pytest

from penstock.checkpoint.settings import CheckpointSettings
from penstock.checkpoint.store import CheckpointStore
from penstock.common import JobStatus, WatermarkStrategy
from penstock.datastream.connectors.file_system import FileSink
from penstock.datastream.connectors.number_seq import NumberSequenceSource
from penstock.jobmanager.phases import Phase
from penstock.testing import local_environment
from penstock.testing.faults import FaultRates, FaultyFileSystem
from penstock.testing.simulator import Simulation

COUNT = 50


@pytest.mark.parametrize("phase", [Phase.UNLAUNCHING, Phase.ENDED])
def test_it_has_one_end_and_all_of_its_output(phase: Phase) -> None:
    filesystem = FaultyFileSystem(random.Random(1), FaultRates())
    with local_environment() as env:
        source = NumberSequenceSource(0, COUNT - 1)
        numbers = env.from_source(source, WatermarkStrategy.no_watermarks(), "numbers")
        files = FileSink.for_row_format(f"{filesystem.uri}/out").build()
        numbers.map(str).sink_to(files)
        job = env._assemble("numbers")
    store = CheckpointStore(f"{filesystem.uri}/checkpoints", job.id)
    job = replace(job, store=store, checkpoints=CheckpointSettings(interval_ms=20)).claimed()
    simulation = Simulation(5, job, filesystem=filesystem)
    simulation.master.start()
    while simulation.master._phase is not phase:
        simulation.tick()
    simulation.master.cancel()
    while not simulation.over:
        simulation.tick()
    # What was under way when it ended, as in the driver's mailbox.
    while simulation.io.queue:
        simulation.io.step()
    assert simulation.statuses == [JobStatus.RUNNING, JobStatus.FINISHED]
    written = b"".join(data for path, data in filesystem.files.items() if path.startswith("/out/"))
    assert sorted(map(int, written.split())) == list(range(COUNT))
    assert all(path.startswith("/out/") for path in filesystem.files)
    filesystem.forget()
