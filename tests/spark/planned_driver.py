"""A driver that counts ticks and does something planned meanwhile, and perhaps dies half-way.

As a program it runs the job of `counting_driver` and, one after another, takes savepoints, changes
the parallelism or stops; each act begins after two more checkpoints. With a *point* it kills
itself with kill -9 where that stands in the code of the driver.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from counting_driver import CountingDriver, report, start

from penstock.checkpoint.savepoints import SavepointLocation
from penstock.common import JobClient
from penstock.errors import RescaleError
from penstock.jobmanager.checkpoints import Checkpoints
from penstock.jobmanager.job_master import JobMaster
from penstock.jobmanager.live_rescale import LiveRescale
from penstock.jobmanager.slots import Slots

PATIENCE = 400.0
"""By when a driver has done what it has to, on a machine that has other things to do."""

Condition = Callable[..., bool]
"""Of the arguments of a call: whether it is the one to die in."""

POINTS: dict[str, tuple[type, str, str, Condition]] = {
    # A savepoint, or that of a stop.
    "its first part is written": (
        *(Checkpoints, "acknowledged", "after"),
        lambda self, message: self._savepoints.get(message.checkpoint) is not None,
    ),
    "its manifest is to be written": (
        *(SavepointLocation, "complete", "before"),
        lambda self, metadata: True,
    ),
    "its manifest is written": (
        *(SavepointLocation, "complete", "after"),
        lambda self, metadata: True,
    ),
    # A stop.
    "it is a checkpoint of the job": (
        *(Checkpoints, "completed", "before"),
        lambda self, metadata: self._savepoints.get(metadata.checkpoint) is not None,
    ),
    "all is committed": (Checkpoints, "_done", "before", lambda self: True),
    # A change of parallelism.
    "every subtask is held": (
        *(Checkpoints, "_write", "before"),
        lambda self, metadata: self._holding.is_held(metadata.checkpoint),
    ),
    "the checkpoint is complete": (
        *(Checkpoints, "completed", "before"),
        lambda self, metadata: self._holding.is_held(metadata.checkpoint),
    ),
    "the old slots are gone": (Slots, "start", "before", lambda self, job: self.launch > 0),
    "the new slots are there": (
        *(JobMaster, "_begin_attempt", "before"),
        lambda self: self._rescale.moving,
    ),
    "the new slots run": (LiveRescale, "attempt_runs", "before", lambda self: self.moving),
}


class PlannedDriver(CountingDriver):
    """A running driver with plans: `acts`, and a `point` to die at."""

    program = __file__

    def __init__(
        self,
        folder: Path,
        parallelism: int,
        acts: list[str] | None = None,
        point: str | None = None,
        **settings: Any,
    ) -> None:
        more = {"acts": acts or [], "point": point}
        super().__init__(folder, parallelism, more=more, patience=PATIENCE, **settings)


def die_at(point: str) -> None:
    """Let this process kill itself there."""
    owner, name, moment, condition = POINTS[point]
    method = getattr(owner, name)

    def dying(*arguments: Any) -> Any:
        doomed = condition(*arguments)
        result = None if doomed and moment == "before" else method(*arguments)
        if doomed:
            os.kill(os.getpid(), signal.SIGKILL)
        return result

    setattr(owner, name, dying)


class Plan(threading.Thread):
    """Carries the acts out."""

    def __init__(self, job: JobClient, folder: Path, acts: list[str]) -> None:
        super().__init__(daemon=True)
        self._job = job
        self._savepoints = str(folder / "savepoints")
        self._acts = acts
        self.done: list[str] = []
        self.paths: list[str] = []
        self.refused = ""
        self.widths: list[int] = []

    def run(self) -> None:
        for act in self._acts:
            self._wait()
            try:
                self._act(*act.split())
            except RescaleError as error:
                self.refused = str(error)
            else:
                self.done.append(act)
        self._wait()

    def _wait(self) -> None:
        seen = self._job.progress().completed_checkpoints
        while self._job.progress().completed_checkpoints < seen + 2:
            time.sleep(0.02)
        self.widths.append(len(self._job.progress().slots))

    def _act(self, act: str, parallelism: str = "") -> None:
        if act == "rescale":
            self._job.rescale(int(parallelism)).result()
        elif act == "savepoint":
            self.paths.append(self._job.trigger_savepoint(self._savepoints).result())
        else:
            self.paths.append(self._job.stop_with_savepoint(False, self._savepoints).result())

    def said(self) -> dict[str, Any]:
        return {
            "done": list(self.done),
            "paths": list(self.paths),
            "refused": self.refused,
            "widths": list(self.widths),
        }


def main(options: dict[str, Any]) -> None:
    if options["point"] is not None:
        die_at(options["point"])
    job = start(options)
    plan = Plan(job, Path(options["folder"]), options["acts"])
    plan.start()
    report(job, plan.said)


if __name__ == "__main__":
    main(json.loads(sys.argv[1]))
