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

pytestmark = [pytest.mark.full, one_at_a_time, pytest.mark.timeout(900)]

SLOTS = 4


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
    assert end["restarts"] >= 3 and end["records"] > 1_000


def _begun(driver: HostedDriver) -> dict[str, Any]:
    return driver.wait_for(lambda now: now["completed"] >= 2, "two checkpoints")
