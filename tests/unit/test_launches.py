"""Launches of a job that restarts again and again: those that are over are not kept."""

from __future__ import annotations

import gc
import threading
import weakref
from typing import Any

from patience import PATIENCE, until

from penstock.common import Configuration
from penstock.common.listening import Listening
from penstock.datastream.results import ClientResults
from penstock.errors import JobFailedError
from penstock.jobmanager.launching import SlotLaunch
from penstock.jobmanager.resource_manager import ResourceManager
from penstock.jobmanager.runner import JobRunner
from penstock.testing import local_environment

RESTARTS = 5
SETTINGS = {
    "restart-strategy.type": "fixed-delay",
    "restart-strategy.fixed-delay.attempts": str(RESTARTS),
    "restart-strategy.fixed-delay.delay": "1 ms",
}


class Cluster:
    """Loses every launch as soon as it has begun."""

    def __init__(self) -> None:
        self.launches: list[weakref.ref[SlotLaunch]] = []

    def check_capacity(self, slots: int, held: int = 0) -> None: ...

    def alive(self) -> int:
        gc.collect()
        return sum(1 for launch in self.launches if launch() is not None)

    def listening(self) -> Listening:
        return Listening("127.0.0.1")

    def launch(self, launch: SlotLaunch, on_end: Any) -> Any:
        self.launches.append(weakref.ref(launch))
        threading.Thread(target=on_end, args=(RuntimeError("gone"),)).start()


def entry(slot: int, host: str, payload: bytes) -> None: ...


def test_the_programs_of_lost_launches_are_not_kept() -> None:
    cluster = Cluster()
    with local_environment(configuration=Configuration.from_dict(SETTINGS)) as env:
        env.from_collection([1, 2, 3]).print()
        job = env._assemble("lost")
        runner = JobRunner(job, ResourceManager(cluster, entry, entry), ClientResults())
        runner.start()
        assert isinstance(runner.result.exception(PATIENCE), JobFailedError)
        assert len(cluster.launches) == RESTARTS + 1
        # The thread of a launch may take a moment to end; the runner lives for as long as the job
        # is known.
        until(lambda: cluster.alive() == 0, "nobody holds a launch")
        assert runner.status().is_terminal_state()
