"""What becomes of a change of layout when the answer of the cluster comes late."""

from __future__ import annotations

from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

import pytest

from penstock.errors import NotEnoughSlotsError
from penstock.jobmanager.live_rescale import LiveRescale, RescaleRequest


@dataclass(frozen=True)
class Job:
    graph: Any
    store: Any = "a store"


def graph(parallelism):
    node = SimpleNamespace(uid="count", parallelism=parallelism)
    job = SimpleNamespace(vertices=[SimpleNamespace(nodes=[node])])
    return SimpleNamespace(slots=parallelism, job=job)


class World:
    """A JobMaster with its environment and its checkpoints, all of which only take notes."""

    def __init__(self):
        self.job, self.runs = Job(graph(1)), True
        self.asked, self.held, self.answers = [], [], {}
        self.stopping = False
        self.rescale = LiveRescale(self, self, self)

    def prepare_launch(self, job, given_back, done):
        self.asked.append((job.graph.slots, given_back, done))

    def answer_of_the_cluster(self, which, error=None):
        self.asked[which][2](error)

    def hold(self, done):
        self.held.append(done)

    @property
    def holding(self):
        return bool(self.held)

    def runs_now(self):
        return self.runs

    def hindrance(self):
        return None

    def ask(self, parallelism):
        def answer(error):
            self.answers[parallelism] = error

        self.rescale.ask(RescaleRequest(graph(parallelism), answer))


@pytest.fixture
def world():
    return World()


def test_the_job_is_held_when_the_cluster_has_cores(world):
    world.ask(3)
    assert [(slots, given_back) for slots, given_back, _ in world.asked] == [(3, 1)]
    assert not world.held
    world.answer_of_the_cluster(0)
    assert len(world.held) == 1


def test_an_answer_after_the_attempt_has_failed_holds_nothing_and_the_next_attempt_asks(world):
    world.ask(3)
    world.runs = False
    world.answer_of_the_cluster(0)
    assert not world.held
    world.runs = True
    world.rescale.attempt_runs()
    world.answer_of_the_cluster(1)
    assert len(world.held) == 1


def test_an_answer_for_a_request_that_is_over_does_not_decide_the_next_one(world):
    world.ask(3)
    world.rescale.over("the job failed")
    world.ask(2)
    world.answer_of_the_cluster(0, NotEnoughSlotsError("too few cores for 3"))
    assert list(world.answers) == [3], "the second request waits for its own answer"
    world.answer_of_the_cluster(1)
    assert len(world.held) == 1
