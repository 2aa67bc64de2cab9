"""Keyed state in RocksDB, in slots on Spark."""

from __future__ import annotations

from pathlib import Path

import pytest
from job_parts import Count, RaiseOnce, as_line, check_output, environment, key_of

from penstock.common import WatermarkStrategy
from penstock.datastream.connectors.data_generator import DataGeneratorSource
from penstock.datastream.connectors.file_system import FileSink

pytestmark = pytest.mark.usefixtures("session")

RECORDS = 6_000


@pytest.mark.parametrize("files_from", ["8 mb", "0"], ids=["entries", "files"])
def test_counts_survive_a_failure_with_hardly_any_memory(tmp_path: Path, files_from: str) -> None:
    databases, out = tmp_path / "databases", tmp_path / "out"
    settings = {
        "state.backend.type": "rocksdb",
        "state.backend.rocksdb.localdir": str(databases),
        "taskmanager.memory.managed.size": "1 kb",
        "state.backend.rocksdb.checkpoint.files-from": files_from,
    }
    env = environment(2, tmp_path / "checkpoints", settings=settings)
    source = DataGeneratorSource(lambda n: n, RECORDS, rate_per_second=3000)
    numbers = env.from_source(source, WatermarkStrategy.no_watermarks(), "numbers")
    fragile = numbers.map(RaiseOnce(RECORDS // 2, tmp_path / "raised"))
    counted = fragile.key_by(key_of).process(Count())
    counted.map(as_line).sink_to(FileSink.for_row_format(str(out)).build())
    env.execute("counts")
    assert (tmp_path / "raised").exists()
    check_output(out, range(RECORDS))
    assert list(databases.iterdir()) == [], "databases end with their slots' work"
