"""Points at which a driver may die while it does something planned.

A point is a place in the code of the driver, on the way of a savepoint, a stop or a change of
parallelism:

    with dying_at("its manifest is written", die):
        ...  # a savepoint is taken; `die` is called when its manifest is written

On Spark `die` kills the process; in the simulator it raises.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple
from unittest.mock import patch

from penstock.checkpoint.savepoints import SavepointLocation
from penstock.jobmanager.checkpoints import Checkpoints
from penstock.jobmanager.job_master import JobMaster
from penstock.jobmanager.live_rescale import LiveRescale


class Point(NamedTuple):
    """Before or after a call of a method, if its arguments fulfil the condition."""

    owner: type
    method: str
    moment: str
    condition: Callable[..., bool]


POINTS = {
    # A savepoint, or that of a stop.
    "its first part is written": Point(
        *(Checkpoints, "acknowledged", "after"),
        lambda self, message: self._savepoints.get(message.checkpoint) is not None,
    ),
    "its manifest is to be written": Point(
        *(SavepointLocation, "complete", "before"),
        lambda self, metadata: True,
    ),
    "its manifest is written": Point(
        *(SavepointLocation, "complete", "after"),
        lambda self, metadata: True,
    ),
    "it is a checkpoint of the job": Point(
        *(Checkpoints, "exists", "before"),
        lambda self, metadata: self._savepoints.get(metadata.checkpoint) is not None,
    ),
    "all is committed": Point(
        *(Checkpoints, "settled", "before"),
        lambda self, metadata: self._savepoints.get(metadata.checkpoint) is not None,
    ),
    # A change of parallelism.
    "every subtask is held": Point(
        *(Checkpoints, "_write", "before"),
        lambda self, pending: self._holding.is_held(pending.id),
    ),
    "the checkpoint is complete": Point(
        *(Checkpoints, "exists", "before"),
        lambda self, metadata: self._holding.is_held(metadata.checkpoint),
    ),
    "the old slots are gone": Point(
        *(JobMaster, "_launch_slots", "before"),
        lambda self: self._rescale.moving,
    ),
    "the new slots are there": Point(
        *(JobMaster, "_begin_attempt", "before"),
        lambda self: self._rescale.moving,
    ),
    "the new slots run": Point(LiveRescale, "attempt_runs", "before", lambda self: self.moving),
}

OF_A_SAVEPOINT = (
    "its first part is written",
    "its manifest is to be written",
    "its manifest is written",
    "it is a checkpoint of the job",
    "all is committed",
)
OF_A_RESCALE = (
    "every subtask is held",
    "the checkpoint is complete",
    "the old slots are gone",
    "the new slots are there",
    "the new slots run",
)
WITH_A_SAVEPOINT = OF_A_SAVEPOINT[2:]
"""From these points on there is a savepoint."""


@contextmanager
def dying_at(point: str, die: Callable[[], object]) -> Iterator[None]:
    """Inside the block, call `die` whenever a driver of this process comes to the point."""
    owner, name, moment, condition = POINTS[point]
    method = getattr(owner, name)

    def dying(*arguments: Any) -> Any:
        doomed = condition(*arguments)
        if doomed and moment == "before":
            die()
        result = method(*arguments)
        if doomed and moment == "after":
            die()
        return result

    with patch.object(owner, name, dying):
        yield
