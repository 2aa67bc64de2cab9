"""Tests on several hosts, which are namespaces of this machine.

A cluster is kept for all tests that can share it. Where a tool is missing, or namespaces may not be
made, the tests are skipped and the run says why, in CI too, where no system package is installed.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

# What jobs are made of lies there, and slots import it by name.
sys.path.insert(0, str(Path(__file__).parents[1] / "spark"))
sys.path.insert(0, str(Path(__file__).parent))

from cluster import Cluster
from hosts import Host, Network, missing_tools, network, refusal


@pytest.fixture(scope="session")
def namespaces() -> None:
    """Skips where hosts cannot be made."""
    if missing := missing_tools():
        pytest.skip(f"this machine has no {', '.join(missing)}")
    if refused := refusal():
        pytest.skip(f"this machine has no right for this user to make namespaces: {refused}")


@pytest.fixture
def net(namespaces: None) -> Iterator[Network]:
    """A network for one test."""
    with network() as made:
        yield made


@dataclass(frozen=True)
class Site:
    """A cluster, and the hosts around it."""

    net: Network
    cluster: Cluster
    workers: list[Host]
    driver: Host
    other_driver: Host


@pytest.fixture(scope="session")
def site(namespaces: None) -> Iterator[Site]:
    """A master, two workers and two hosts for drivers, for all tests that leave it as it was."""
    with network() as made:
        cluster = Cluster(made)
        workers = [made.host("worker1"), made.host("worker2")]
        drivers = [made.host("driver1"), made.host("driver2")]
        for worker in workers:
            cluster.start_worker(worker)
        yield Site(made, cluster, workers, *drivers)
