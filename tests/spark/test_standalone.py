"""A real cluster: a master, two workers, executors in processes of their own."""

from __future__ import annotations

from pathlib import Path

import pytest
from patience import PATIENCE, until
from slot_driver import gone

from penstock.testing.spark_cluster import StandaloneCluster, standalone_cluster

pytestmark = pytest.mark.full

_DRIVER = """
import sys
from pathlib import Path
import slot_entries
from clusters import EXECUTORS
from slot_driver import Launched
from penstock.spark.launcher import SparkLauncher
from penstock.spark.session import session_for

launcher = SparkLauncher(session_for(sys.argv[1], "test", EXECUTORS))
launcher.check_capacity(4)
launched = Launched(launcher, slot_entries.stay, Path(sys.argv[2]), slots=4)
print(*launched.pids(), flush=True)
print(launched.end(), flush=True)
launcher.check_capacity(2)
again = Launched(launcher, slot_entries.report, Path(sys.argv[2], "again"))
print(again.end(), flush=True)
"""


def test_a_lost_worker_ends_the_launch(start_driver, tmp_path: Path) -> None:
    cluster: StandaloneCluster
    with standalone_cluster(workers=2, cores=2) as cluster:
        driver = start_driver(_DRIVER, cluster.master_url, str(tmp_path / "slots"))
        pids = [int(pid) for pid in driver.stdout.readline().split()]
        assert len(pids) == 4, driver.communicate()
        executors = cluster.executor_pids()
        assert len(executors) == 2

        cluster.kill_worker(0)
        assert driver.stdout.readline().strip() == "an executor was lost"
        until(lambda: gone(pids), "all slots are gone")
        assert driver.stdout.readline().strip() == "None", "the other worker takes new slots"
        _, err = driver.communicate(timeout=PATIENCE)
        started = [cluster.master_pid, *cluster.worker_pids, *executors]
    until(lambda: gone(started), "the cluster is gone")
    assert len(err.splitlines()) <= 2, err
