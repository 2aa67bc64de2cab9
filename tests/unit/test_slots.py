"""The slots of a job as the JobMaster sees them: who is there, who is told, who has answered."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from penstock.graph.execution_graph import SubtaskId
from penstock.jobmanager.slots import Slots
from penstock.network.messages import Leave, Register


class Cluster:
    """Notes what the slots are told, as (launch, slot, message)."""

    def __init__(self):
        self.launches, self.told = [], []

    def launch(self, launch, job):
        self.launches.append((launch, job.graph.slots))

    def tell(self, launch, slot, message):
        self.told.append((launch, slot, message))


def job(slots):
    return SimpleNamespace(graph=SimpleNamespace(slots=slots, slot_of=lambda subtask: subtask[1]))


@pytest.fixture
def cluster():
    return Cluster()


@pytest.fixture
def slots(cluster):
    """Two of three slots have registered."""
    made = Slots(cluster, job(1))
    made.start(job(3))
    for slot in (0, 2):
        made.register(Register(1, slot, "host", 100 + slot))
    return made


def test_the_slots_are_complete_when_as_many_as_the_job_needs_have_registered(slots, cluster):
    assert cluster.launches == [(1, 3)]
    assert (slots.complete, slots.missing) == (False, 1)
    slots.register(Register(1, 1, "host", 101))
    assert (slots.complete, slots.missing) == (True, 0)


def test_slots_of_an_earlier_launch_do_not_count(slots, cluster):
    slots.start(job(2))
    assert cluster.launches[-1] == (2, 2)
    assert (slots.complete, slots.missing) == (False, 2)


def test_slots_that_are_gone_are_told_nothing(slots, cluster):
    slots.gone()
    assert not slots.launched
    assert slots.missing == 3
    slots.tell_all("anything")
    assert cluster.told == []


def test_messages_go_to_the_slots_of_the_newest_launch_that_have_registered(slots, cluster):
    slots.tell_all("all")
    slots.tell_subtask(SubtaskId(7, 2), "one")
    assert cluster.told == [(1, 0, "all"), (1, 2, "all"), (1, 2, "one")]


def test_a_slot_of_another_launch_is_told_to_leave(slots, cluster):
    slots.turn_away(0, 5)
    assert cluster.told == [(0, 5, Leave())]


def test_all_have_answered_when_each_that_was_asked_has(slots, cluster):
    slots.ask_all("question")
    assert [slot for _, slot, _ in cluster.told] == [0, 2]
    assert slots.answered(2) is False
    assert slots.answered(2) is False, "the same slot twice"
    assert slots.answered(0) is True
