"""The changelog, in slots on Spark."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import pytest
from job_parts import Count, RaiseOnce, as_line, check_output, environment, key_of

from penstock.checkpoint.store import CheckpointStore
from penstock.common import WatermarkStrategy
from penstock.datastream.connectors.data_generator import DataGeneratorSource
from penstock.datastream.connectors.file_system import FileSink

pytestmark = pytest.mark.usefixtures("session")

RECORDS = 6_000


@pytest.mark.parametrize("backend", ["hashmap", "rocksdb"])
def test_a_job_goes_on_from_what_was_logged(tmp_path: Path, backend: str) -> None:
    settings: dict[str, Any] = {
        "state.backend.type": backend,
        "state.backend.changelog.enabled": "true",
        "penstock.changelog.interval": "20 ms",
        "execution.checkpointing.num-retained": 100,
        "pipeline.jobid": "0123456789abcdef0123456789abcdef",
    }
    env = environment(2, tmp_path / "checkpoints", interval="300 ms", settings=settings)
    source = DataGeneratorSource(lambda n: n, RECORDS, rate_per_second=3000)
    numbers = env.from_source(source, WatermarkStrategy.no_watermarks(), "numbers")
    fragile = numbers.map(RaiseOnce(RECORDS // 2, tmp_path / "raised"))
    counted = fragile.key_by(key_of).process(Count())
    counted.map(as_line).sink_to(FileSink.for_row_format(str(tmp_path / "out")).build())
    client = env.execute_async("counts")
    store = CheckpointStore((tmp_path / "checkpoints").as_uri(), settings["pipeline.jobid"])
    pieces: set[str] = set()
    while not client.get_job_execution_result().done():
        for checkpoint in store.manifests():
            pieces |= {path for path in checkpoint.segment_paths() if "-log-" in path}
        time.sleep(0.1)
    client.get_job_execution_result().result()
    assert (tmp_path / "raised").exists()
    check_output(tmp_path / "out", range(RECORDS))
    assert pieces, "checkpoints refer to pieces of the changelog"
