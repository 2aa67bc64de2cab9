"""Slots as tasks of a Spark barrier stage: Spark starts all of them or none.

    launcher = SparkLauncher(session)
    launcher.check_capacity(launch.slots)
    handle = launcher.launch(launch, on_end=print)

A launch is one Spark job, run from a thread of its own, so several of them and ordinary Spark jobs
run beside each other in one session.
"""

from __future__ import annotations

import pickle
import shutil
from collections.abc import Callable, Iterable
from typing import Any

from pyspark.sql import SparkSession

from penstock.common.listening import Listening
from penstock.common.shipped_files import PackedFile, ShippedFile
from penstock.errors import SparkLaunchError
from penstock.jobmanager.launching import SlotLaunch
from penstock.spark.capacity import capacity_of, may_grow, wait_for_slots
from penstock.spark.failures import STOPPED, no_python
from penstock.spark.settings import is_on_this_machine
from penstock.spark.shipping import search_path_for, ship_files
from penstock.spark.spark_job import SparkJob

_HERE = "127.0.0.1"


class SparkLauncher:
    """A `SlotLauncher` on a Spark session."""

    def __init__(self, session: SparkSession) -> None:
        self._context = session.sparkContext
        self._on_this_machine = is_on_this_machine(str(self._context.master))
        self._shipped: dict[str, tuple[tuple[ShippedFile, ...], tuple[PackedFile, ...]]] = {}

    def check_capacity(self, slots: int, held: int = 0) -> None:
        """See `SlotLauncher`."""
        self._check_open()
        context = self._context
        wait_for_slots(
            slots, lambda: capacity_of(context).without(held), may_grow=may_grow(context)
        )

    def launch(
        self, launch: SlotLaunch, on_end: Callable[[BaseException | None], None]
    ) -> SparkJob:
        """See `SlotLauncher`. Raises `SparkLaunchError` when the session has been stopped."""
        self._check_open()
        self._check_python(launch.python)
        body = _slot_body(
            launch=pickle.dumps((launch.entry, launch.payload, launch.job_id, self._ship(launch))),
            host=_HERE if self._on_this_machine else None,
            search_path=search_path_for(self._context),
        )
        job = SparkJob(self._context, launch, body, on_end)
        job.start()
        return job

    def _ship(self, launch: SlotLaunch) -> tuple[PackedFile, ...]:
        """The files of the job, as they were when it was first launched."""
        if not launch.files:
            return ()
        files, packed = self._shipped.get(launch.job_id, ((), ()))
        # The very same tuple: another job under this id has one of its own.
        if files is not launch.files:
            packed = ship_files(self._context, launch.files)
            self._shipped[launch.job_id] = (launch.files, packed)
        return packed

    def listening(self) -> Listening:
        """See `SlotLauncher`."""
        if self._on_this_machine:
            return Listening(_HERE)
        conf = self._context.getConf()
        host, bound = conf.get("spark.driver.host"), conf.get("spark.driver.bindAddress")
        return Listening(str(host), bound or "")

    def _check_python(self, python: str | None) -> None:
        """Elsewhere only Spark can tell, and says so after it has tried."""
        if not self._on_this_machine:
            return
        if python is not None and shutil.which(python) is None:
            raise SparkLaunchError(f"python.executable: {python} cannot be executed", lasting=True)
        if python is None and shutil.which(self._context.pythonExec) is None:
            raise SparkLaunchError(no_python(self._context.pythonExec), lasting=True)

    def _check_open(self) -> None:
        if self._context._jsc is None:
            raise SparkLaunchError(STOPPED, lasting=True)


def _slot_body(
    launch: bytes, host: str | None, search_path: list[str]
) -> Callable[[Iterable[int]], Iterable[Any]]:
    """The function that Spark calls in each task.

    It is nested so that it is pickled by value and needs no module of ours to be unpickled: it is
    what makes them importable.
    """

    def body(_: Iterable[int]) -> Iterable[Any]:
        import sys

        # First, because the worker's Python may be another than the driver's, with other packages.
        others = [entry for entry in sys.path if entry not in search_path]
        sys.path[:] = [*search_path, *others]
        from penstock.spark.slot_task import run

        run(launch, host)
        return ()

    return body
