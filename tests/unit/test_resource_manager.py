"""What the ResourceManager asks of a cluster before slots are launched anew."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from penstock.common.listening import Listening
from penstock.errors import NotEnoughSlotsError
from penstock.jobmanager.launching import SlotLaunch
from penstock.jobmanager.resource_manager import ResourceManager


def entry(slot: int, host: str, payload: bytes) -> None: ...


def warm_up(slot: int, host: str, program: bytes) -> None: ...


class Cluster:
    """Ends every launch at once, with `error`."""

    def __init__(self, cores: int, error: BaseException | None = None) -> None:
        self.cores = cores
        self.error = error
        self.launched: list[SlotLaunch] = []

    def check_capacity(self, slots: int, held: int = 0) -> None:
        if slots - held > self.cores:
            raise NotEnoughSlotsError("too few")

    def launch(self, launch: SlotLaunch, on_end: Any) -> Any:
        self.launched.append(launch)
        on_end(self.error)

    def listening(self) -> Listening:
        return Listening("here")


def job(slots: int) -> Any:
    graph = SimpleNamespace(slots=slots)
    return SimpleNamespace(id="id", name="name", graph=graph, files=(), python="python")


@pytest.mark.parametrize("error", [None, RuntimeError("no")], ids=["well", "in vain"])
def test_processes_beyond_those_that_are_given_back_are_warmed_up(error: Any) -> None:
    cluster = Cluster(3, error)
    ResourceManager(cluster, entry, warm_up).prepare_slots(job(5), 2, b"program")
    [launch] = cluster.launched
    assert (launch.slots, launch.entry, launch.payload) == (3, warm_up, b"program")
    assert launch.python == "python"


def test_nothing_is_warmed_up_if_there_are_processes_for_all() -> None:
    cluster = Cluster(3)
    ResourceManager(cluster, entry, warm_up).prepare_slots(job(2), 2, b"program")
    assert cluster.launched == []


def test_nothing_is_launched_where_there_is_no_room() -> None:
    cluster = Cluster(3)
    with pytest.raises(NotEnoughSlotsError):
        ResourceManager(cluster, entry, warm_up).prepare_slots(job(6), 2, b"program")
    assert cluster.launched == []
