"""Jobs on several hosts lose slots, executors, workers and hosts: the answer is exact.

Records go over TCP with CURVE here, for no two hosts share a machine as far as Penstock knows.
`finish` compares every count with what the source made.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from cluster import HostedDriver, slots_on
from clusters import one_at_a_time
from conftest import Site
from patience import until

pytestmark = [pytest.mark.full, one_at_a_time, pytest.mark.timeout(900)]

SLOTS = 4
ENOUGH = 100
"""Records, so that there was something to count; how many there are depends on the clock."""


@pytest.fixture
def folder(site: Site, request: pytest.FixtureRequest) -> Path:
    """A folder that all hosts see."""
    return site.net.shared / request.node.name


def test_a_slot_an_executor_and_a_worker_are_killed(site: Site, folder: Path) -> None:
    worker = site.workers[0]
    with HostedDriver(site.driver, site.cluster, folder, SLOTS) as driver:
        now = _begun(driver)
        assert {host for host, _ in now["places"]} == {w.address for w in site.workers}
        slots_on(now, worker)[0].kill()
        now = driver.recovered(now)
        for executor in worker.named("ExecutorBackend"):
            executor.kill()
        now = driver.recovered(now)
        for process in worker.named("deploy.worker.Worker"):
            process.kill()
        site.cluster.start_worker(worker)
        driver.recovered(now)
        end = driver.finish()
    assert end["restarts"] >= 3 and end["records"] > ENOUGH


def test_a_host_is_cut_off_for_a_while(site: Site, folder: Path) -> None:
    worker = site.workers[1]
    with HostedDriver(site.driver, site.cluster, folder, SLOTS) as driver:
        now = _begun(driver)
        old = slots_on(now, worker)
        assert len(old) == 2
        site.net.cut(worker)
        try:
            driver.wait_for(lambda later: later["status"] == "RESTARTING", "the loss is noticed")
            # The slots there hear of nobody, and end by themselves.
            until(lambda: not any(p.is_running() for p in old), "the slots that were cut off end")
        finally:
            site.net.join(worker)
        driver.recovered(now)
        end = driver.finish()
    assert end["restarts"] >= 1 and end["records"] > ENOUGH


def test_what_a_host_sends_to_the_driver_is_lost(site: Site, folder: Path) -> None:
    worker = site.workers[0]
    with HostedDriver(site.driver, site.cluster, folder, SLOTS) as driver:
        now = _begun(driver)
        site.net.lose(worker, site.driver)
        try:
            driver.wait_for(lambda later: later["status"] == "RESTARTING", "the loss is noticed")
        finally:
            site.net.lose_no_more(worker, site.driver)
        driver.recovered(now)
        end = driver.finish()
    assert end["restarts"] >= 1 and end["records"] > ENOUGH


def test_another_host_takes_over_from_a_driver_that_is_cut_off(site: Site, folder: Path) -> None:
    # Two slots each: the executors of the driver that is cut off stay for a while.
    settings = {"pipeline.jobid": "counting", "spark.cores.max": "2"}
    with HostedDriver(site.driver, site.cluster, folder, 2, **settings) as lost:
        _begun(lost)
        site.net.cut(site.driver)
        try:
            with HostedDriver(site.other_driver, site.cluster, folder, 2, **settings) as driver:
                _begun(driver)
                assert driver.finish()["records"] > ENOUGH
        finally:
            site.net.join(site.driver)


def _begun(driver: HostedDriver) -> dict[str, Any]:
    return driver.wait_for(lambda now: now["completed"] >= 2, "two checkpoints")
