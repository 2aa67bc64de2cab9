"""Kill Workers of a real cluster, and executors and slots between them: the answer is exact.

In a local-cluster, where `test_kills` kills slots and executors, a Worker is a thread of the
driver. Here every part is a process of its own, and a Worker takes its executor and its slots with
it. The job needs the cores of all Workers, so it waits for the one that is started in the place of
the one that was killed.
"""

from __future__ import annotations

import random
import time
from pathlib import Path
from typing import Any

import psutil
import pytest
from clusters import EXECUTORS
from counting_driver import CountingDriver
from job_parts import visible_lines
from patience import until

from penstock.testing.spark_cluster import StandaloneCluster, standalone_cluster

pytestmark = pytest.mark.full("kills")

SEED = 21
WORKERS, CORES = 2, 2
PATIENCE = 600.0
"""Seconds: a start of three JVMs takes five of them, or a hundred on a machine that is busy."""


@pytest.mark.timeout(1_800)
def test_workers_killed_at_random_moments(tmp_path: Path, request: pytest.FixtureRequest) -> None:
    worker_kills = 20 if request.config.getoption("--long") else 5
    victims = ["worker"] * worker_kills + ["executor"] * 2 + ["slot"] * 3
    chance = random.Random(SEED)
    chance.shuffle(victims)
    with standalone_cluster(workers=WORKERS, cores=CORES) as cluster:
        settings = {"spark.master": cluster.master_url, **EXECUTORS}
        parallelism = WORKERS * CORES
        with CountingDriver(tmp_path, parallelism, patience=PATIENCE, **settings) as driver:
            now = driver.wait_for(lambda now: now["completed"] >= 1, "a checkpoint")
            assert len(now["slots"]) == parallelism
            killer = _Killer(cluster, driver, chance)
            for victim in victims:
                # Sometimes as soon as there are slots, before a checkpoint or even a record.
                if chance.random() < 0.5:
                    _checkpointed(driver, now)
                    time.sleep(chance.random())
                now = driver.next_attempt(killer.kill(victim, now))
            _checkpointed(driver, now)
            driver.wait_for(lambda _: len(visible_lines(tmp_path / "out")) > 2_000, "much output")
            end = driver.finish()
        until(lambda: not killer.left_over(), "nothing is left", PATIENCE)
    assert end["restarts"] >= len(victims)
    assert not [path for path in (tmp_path / "checkpoints").rglob("*") if path.is_file()]


def _checkpointed(driver: CountingDriver, now: dict[str, Any]) -> None:
    driver.wait_for(lambda later: later["completed"] > now["completed"], "another checkpoint")


class _Killer:
    """Kills what a slot of the current attempt hangs on: its process, its executor, its Worker.

    So every kill hits the job, whatever else of Spark's comes and goes at that moment.
    """

    def __init__(
        self, cluster: StandaloneCluster, driver: CountingDriver, chance: random.Random
    ) -> None:
        self._cluster = cluster
        self._driver = driver
        self._chance = chance
        self._seen: set[psutil.Process] = set()

    def kill(self, victim: str, now: dict[str, Any]) -> dict[str, Any]:
        """kill -9 a `victim` of the attempt of `now`, and start a killed Worker again.

        An attempt that is falling already (its slots began on an executor that was on its way out)
        is not hit: then the one after it is. Returns the picture of the attempt that was.
        """
        while True:
            chain = self._chain(self._chance.choice(now["slots"]))
            if chain is not None and self._hit(victim, chain):
                return now
            now = self._driver.next_attempt(now)

    def _chain(self, slot: int) -> dict[str, psutil.Process] | None:
        """Slot, executor and Worker, each a descendant of the next; None if one of them is gone."""
        try:
            process = psutil.Process(slot)
            above = {parent.pid: parent for parent in process.parents()}
        except psutil.NoSuchProcess:
            return None
        executors = above.keys() & set(self._cluster.executor_pids())
        workers = above.keys() & set(self._cluster.worker_pids)
        if not executors or not workers:
            return None
        return {"slot": process, "executor": above[executors.pop()], "worker": above[workers.pop()]}

    def _hit(self, victim: str, chain: dict[str, psutil.Process]) -> bool:
        """Whether the victim was still there."""
        process = chain[victim]
        self._seen.update((chain["slot"], chain["executor"], process))
        if victim == "worker":
            worker = self._cluster.worker_pids.index(process.pid)
            self._cluster.kill_worker(worker)
            self._cluster.restart_worker(worker)
            return True
        try:
            process.kill()
        except psutil.NoSuchProcess:
            return False
        return True

    def left_over(self) -> list[psutil.Process]:
        """What is still there of what was seen, but for the Workers that nobody killed."""
        return [process for process in self._seen if _runs(process)]


def _runs(process: psutil.Process) -> bool:
    try:
        return bool(process.is_running() and process.status() != psutil.STATUS_ZOMBIE)
    except psutil.NoSuchProcess:
        return False
