"""Are there enough free cores for a launch?

Spark would let a barrier stage that does not fit wait in silence, so the question is asked before.
The answer changes over seconds: executors of a fresh session still register, a job beside ours
ends, slots of the last attempt are still being killed.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

from pyspark import SparkContext

from penstock.errors import NotEnoughSlotsError
from penstock.spark.settings import is_local

FIRST_EXECUTOR_TIMEOUT = 30.0
"""Seconds to wait while no executor has registered yet."""
SETTLE_TIMEOUT = 5.0
"""Seconds to wait, from the first executor on, for more of them and for busy cores."""
_POLL = 0.1


@dataclass(frozen=True)
class Capacity:
    """How many tasks a session can run at once, and how many it has to run now."""

    total: int
    busy: int

    @property
    def free(self) -> int:
        return max(0, self.total - self.busy)

    def without(self, tasks: int) -> Capacity:
        """As it would be if so many tasks did not run."""
        return Capacity(self.total, max(0, self.busy - tasks))


def capacity_of(context: SparkContext) -> Capacity:
    """The capacity of a session now."""
    jvm_context = context._jsc.sc()
    profile = jvm_context.resourceProfileManager().defaultResourceProfile()
    return Capacity(int(jvm_context.maxNumConcurrentTasks(profile)), _unfinished_tasks(context))


def _unfinished_tasks(context: SparkContext) -> int:
    # By stages, because in local mode Spark does not count them by executor. Not the running ones:
    # of tasks that have just started Spark's count knows only seconds later, and those of a stage
    # that still wait take every core that becomes free before we do.
    tracker = context.statusTracker()
    stages = (tracker.getStageInfo(stage) for stage in tracker.getActiveStageIds())
    return sum(stage.numTasks - stage.numCompletedTasks for stage in stages if stage is not None)


def wait_for_slots(
    needed: int,
    probe: Callable[[], Capacity],
    *,
    may_grow: bool,
    clock: Callable[[], float] = time.monotonic,
    sleep: Callable[[float], None] = time.sleep,
) -> None:
    """Return when `needed` cores are free; raise `NotEnoughSlotsError` when they will not be."""
    deadline = clock() + FIRST_EXECUTOR_TIMEOUT
    settling = False
    while True:
        now = probe()
        if now.free >= needed:
            return
        if now.total < needed and not may_grow:
            raise NotEnoughSlotsError(_message(needed, now))
        if now.total > 0 and not settling:
            settling = True
            deadline = clock() + SETTLE_TIMEOUT
        if clock() >= deadline:
            raise NotEnoughSlotsError(_message(needed, now))
        sleep(_POLL)


def may_grow(context: SparkContext) -> bool:
    """Whether more cores can appear: not in local mode, where their number is in the master."""
    return not is_local(str(context.master))


def _message(needed: int, now: Capacity) -> str:
    if now.total == 0:
        return (
            f"the job needs {needed} slots and no Spark executor has registered: check that the "
            "cluster has workers with free cores and memory."
        )
    if now.total < needed:
        return (
            f"the job needs {needed} slots and the Spark session has {now.total}: lower the "
            "parallelism, or give the session more cores (local[N], or more executors)."
        )
    return (
        f"the job needs {needed} slots and {now.free} of the Spark session's {now.total} are "
        "free: wait for other jobs or cancel them, lower the parallelism, or add cores."
    )
