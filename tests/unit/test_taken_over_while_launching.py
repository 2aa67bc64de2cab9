"""A driver that was taken over finds out although it gets no slots, and says who took over."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

from patience import PATIENCE

from penstock.common import Configuration
from penstock.common.listening import Listening
from penstock.datastream.results import ClientResults
from penstock.errors import JobFailedError, SupersededError
from penstock.jobmanager.launching import SlotLaunch
from penstock.jobmanager.resource_manager import ResourceManager
from penstock.jobmanager.runner import JobRunner
from penstock.testing import local_environment


class Cluster:
    """Never starts a slot: it loses the first `lost` launches, and leaves the next one waiting."""

    def __init__(self, lost: int) -> None:
        self.lost = lost
        self.launches = 0
        self.on_launch = threading.Event()
        self.go_on = threading.Event()

    def check_capacity(self, slots: int, held: int = 0) -> None: ...

    def listening(self) -> Listening:
        return Listening("127.0.0.1")

    def launch(self, launch: SlotLaunch, on_end: Any) -> Any:
        self.launches += 1
        lost, handle = self.launches <= self.lost, Handle(on_end)

        def lose() -> None:
            self.on_launch.set()
            self.go_on.wait(PATIENCE)
            if lost:
                handle.end(RuntimeError("gone"))

        threading.Thread(target=lose, daemon=True).start()
        return handle


class Handle:
    def __init__(self, on_end: Any) -> None:
        self.end = on_end

    def cancel(self) -> None:
        self.end(None)


def entry(slot: int, host: str, payload: bytes) -> None: ...


def taken_over(directory: Path, cluster: Cluster) -> BaseException | None:
    """How the job of a driver ends when another one takes it over during its first launch."""
    settings = {
        "restart-strategy.type": "fixed-delay",
        "restart-strategy.fixed-delay.attempts": "1000000",
        "restart-strategy.fixed-delay.delay": "1 ms",
        "execution.checkpointing.interval": "1 s",
        "execution.checkpointing.dir": directory.as_uri(),
    }
    with local_environment(configuration=Configuration.from_dict(settings)) as env:
        env.from_collection([1, 2, 3]).print()
        job = env._assemble("overtaken").claimed()
        assert job.store is not None
        runner = JobRunner(job, ResourceManager(cluster, entry, entry), ClientResults())
        runner.start()
        assert cluster.on_launch.wait(PATIENCE)
        job.store.claim()
        cluster.go_on.set()
        try:
            return runner.result.exception(PATIENCE)
        finally:
            runner.cancel()
            runner.join(PATIENCE)


def says_who(error: BaseException | None) -> bool:
    assert isinstance(error, JobFailedError)
    assert isinstance(error.__cause__, SupersededError)
    return "the job was taken over: generation 2 of its drivers is at work" in str(error)


def test_it_looks_before_it_launches_again(tmp_path: Path) -> None:
    cluster = Cluster(lost=1000000)
    assert says_who(taken_over(tmp_path, cluster))
    assert cluster.launches == 1


def test_it_looks_while_it_waits_for_slots(tmp_path: Path) -> None:
    cluster = Cluster(lost=0)
    assert says_who(taken_over(tmp_path, cluster))
    assert cluster.launches == 1
