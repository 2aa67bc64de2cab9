"""A running job changes its parallelism on a real Spark, while records flow."""

from __future__ import annotations

from pathlib import Path

import pytest
from clusters import local_cluster, one_at_a_time
from planned_driver import PlannedDriver


@one_at_a_time
@pytest.mark.full
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("backend", ["hashmap", "rocksdb"])
def test_from_one_to_two_to_three_to_one(tmp_path: Path, backend: str) -> None:
    acts = ["rescale 2", "rescale 3", "rescale 1"]
    files = {"state.backend.rocksdb.checkpoint.files-from": "0"}
    settings = {**local_cluster(2, 2), "state.backend.type": backend, **files}
    with PlannedDriver(tmp_path, 1, acts, **settings) as driver:
        now = driver.wait_for(lambda now: len(now.get("widths", ())) == 4, "three changes")
        assert now["widths"] == [1, 2, 3, 1], "slots before and after each"
        assert now["done"] == acts
        assert (now["attempt"], now["restarts"]) == (4, 0)
        assert driver.finish()["records"] > 500


def test_too_few_cores_are_no_harm(tmp_path: Path) -> None:
    settings = {"spark.master": "local[2]"}
    with PlannedDriver(tmp_path, 1, ["rescale 3"], **settings) as driver:
        now = driver.wait_for(lambda now: now.get("refused"), "the refusal")
        assert "the job needs 3 slots and the Spark session has 2" in now["refused"]
        assert now["attempt"] == 1
        assert driver.finish()["records"] > 100
