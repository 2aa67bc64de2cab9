"""A driver that counts ticks and does something planned meanwhile, and perhaps dies half-way.

As a program it runs the job of `counting_driver` and, one after another, takes savepoints, changes
the parallelism or stops; each act begins after two more checkpoints. With a *point*, one of
`penstock.testing.planned_points`, it kills itself with kill -9 there.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import threading
import time
from contextlib import nullcontext
from pathlib import Path
from typing import Any

from counting_driver import CountingDriver, report, start

from penstock.common import JobClient
from penstock.errors import RescaleError
from penstock.testing.planned_points import dying_at

PATIENCE = 400.0
"""By when a driver has done what it has to, on a machine that has other things to do."""


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


def die() -> None:
    """Let this process kill itself."""
    os.kill(os.getpid(), signal.SIGKILL)


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
    point = options["point"]
    with dying_at(point, die) if point is not None else nullcontext():
        job = start(options)
        plan = Plan(job, Path(options["folder"]), options["acts"])
        plan.start()
        report(job, plan.said)


if __name__ == "__main__":
    main(json.loads(sys.argv[1]))
