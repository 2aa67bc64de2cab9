"""Jobs on a real cluster: a master and two workers, and what becomes of a job that loses one."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import psutil
import pytest
from clusters import EXECUTORS
from counting_driver import CountingDriver
from patience import until
from slot_driver import gone

from penstock.testing.spark_cluster import standalone_cluster

pytestmark = pytest.mark.full


def test_a_job_survives_the_loss_of_a_slot_an_executor_and_a_worker(tmp_path: Path) -> None:
    with standalone_cluster(workers=2, cores=2) as cluster:
        settings = {"spark.master": cluster.master_url, **EXECUTORS}
        with CountingDriver(tmp_path, parallelism=2, **settings) as driver:
            begun = driver.wait_for(lambda now: now["completed"] >= 2, "two checkpoints")
            os.kill(begun["slots"][0], signal.SIGKILL)
            first = driver.recovered(begun)

            [executor] = _ancestors(first["slots"][0]) & set(cluster.executor_pids())
            cluster.kill(executor)
            second = driver.recovered(first)

            [worker] = _ancestors(second["slots"][0]) & set(cluster.worker_pids)
            cluster.kill_worker(cluster.worker_pids.index(worker))
            third = driver.recovered(second)
            until(lambda: gone(second["slots"]), "the slots of old attempts are gone")
            end = driver.finish()
            assert end["restarts"] == third["restarts"] >= 3
            assert end["records"] > 1_000


def _ancestors(pid: int) -> set[int]:
    return {process.pid for process in psutil.Process(pid).parents()}
