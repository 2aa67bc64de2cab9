"""A running job changes its layout: the same job, other slots.

    asked --cores are there--> held at a checkpoint --slots gone--> launched anew --all run--> there
      |                            |                                     |
      +---- refused: it runs on <--+                                     +--> goes back, and runs on

While the job still runs, the processes that it will have more of are started, so that they have
imported the program when it stands still.

A checkpoint behind which nothing more is processed, and no state of which is written anew: what it
costs is what changed since the last one. The new slots restore it by key groups. Until every one
of them runs, the old layout is what the job goes back to, from the same checkpoint: there is
always one of the two to go on with. A driver that dies on the way leaves the checkpoint, which the
next one restores at whatever parallelism its program has.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Protocol

from penstock.errors import CheckpointError, RescaleError
from penstock.graph.execution_graph import ExecutionGraph
from penstock.jobmanager.checkpoints import Checkpoints
from penstock.jobmanager.endings import as_penstock
from penstock.jobmanager.environment import JobMasterEnvironment
from penstock.jobmanager.job import Job

log = logging.getLogger(__name__)

RescaleAnswer = Callable[["RescaleError | None"], None]
"""Called once: with None when the job runs in the new layout, or with why it does not."""


@dataclass(frozen=True)
class RescaleRequest:
    """Somebody asks that the job go on as `graph`, the same program in another layout."""

    graph: ExecutionGraph
    answer: RescaleAnswer


class Relaunches(Protocol):
    """The JobMaster, as far as a change of layout is concerned."""

    @property
    def job(self) -> Job: ...

    def runs_now(self) -> bool:
        """Whether an attempt runs, or is only to be waited for."""
        ...

    def hindrance(self) -> str | None:
        """Why no attempt will be held at a checkpoint any more."""
        ...

    def relaunch_as(self, job: Job) -> None:
        """Go on as `job` from the checkpoint that holds the attempt."""
        ...


class LiveRescale:
    """The change of layout that was asked for; one at a time."""

    def __init__(
        self, environment: JobMasterEnvironment, checkpoints: Checkpoints, master: Relaunches
    ) -> None:
        self._environment = environment
        self._checkpoints = checkpoints
        self._master = master
        self._request: RescaleRequest | None = None
        self._before: Job | None = None

    @property
    def moving(self) -> bool:
        """Whether the old slots are let go, and the new ones do not all run yet."""
        return self._before is not None

    def ask(self, request: RescaleRequest) -> None:
        """Begin, unless that cannot be."""
        before = self._master.job.graph
        refusal = self._refusal()
        if refusal is not None:
            request.answer(RescaleError(f"the job was not rescaled: {refusal}"))
        elif same_layout(request.graph, before):
            request.answer(None)
        else:
            self._request = request
            if self._master.runs_now():
                self._begin(request)

    def _begin(self, request: RescaleRequest) -> None:
        before = self._master.job
        self._environment.prepare_launch(
            replace(before, graph=request.graph),
            before.graph.slots,
            lambda error: self._prepared(request, error),
        )

    def _refusal(self) -> str | None:
        if self._master.job.store is None:
            return "it has no checkpoints; set execution.checkpointing.interval"
        if self._request is not None:
            return "it is being rescaled already"
        if self._checkpoints.stopping:
            return "it is about to stop"
        return self._master.hindrance()

    def _prepared(self, request: RescaleRequest, error: Exception | None) -> None:
        """Whether there are cores is known; an attempt that failed meanwhile begins again."""
        if self._request is not request or not self._master.runs_now():
            return
        hindrance = as_penstock(error).summary() if error is not None else self._master.hindrance()
        if hindrance is not None:
            self.over(hindrance)
        elif not self._checkpoints.holding:
            self._checkpoints.hold(self._held)

    def _held(self, checkpoint: int | None, error: CheckpointError | None) -> None:
        """The checkpoint to go on from is complete and every subtask stands still; or not."""
        if error is not None:
            self.over(error.summary())
            return
        assert self._request is not None
        log.info("the job changes its layout at checkpoint %d", checkpoint)
        before = self._before = self._master.job
        self._master.relaunch_as(replace(before, graph=self._request.graph))

    def way_back(self) -> Job:
        """The job as it was before it moved."""
        assert self._before is not None
        return self._before

    def attempt_runs(self) -> None:
        """Every slot runs."""
        if self.moving:
            self._answer(None)
        elif self._request is not None:
            self._begin(self._request)

    def over(self, reason: str) -> None:
        """Nothing comes of it."""
        if self._request is not None:
            self._answer(RescaleError(f"the job was not rescaled: {reason}"))

    def _answer(self, error: RescaleError | None) -> None:
        request, self._request, self._before = self._request, None, None
        assert request is not None
        request.answer(error)


def same_layout(one: ExecutionGraph, other: ExecutionGraph) -> bool:
    """Whether every operator has the same parallelism in both."""
    return _parallelisms(one) == _parallelisms(other)


def _parallelisms(graph: ExecutionGraph) -> dict[str, int]:
    return {node.uid: node.parallelism for vertex in graph.job.vertices for node in vertex.nodes}
