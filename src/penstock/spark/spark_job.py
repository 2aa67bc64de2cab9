"""One launch as one Spark job: start it, hear of its end, cancel it.

The job ends when every slot's entry has returned, when a slot fails or is lost (Spark kills the
others within four seconds), or when it is cancelled.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable
from typing import Any
from uuid import uuid4

from pyspark import RDD, InheritableThread, SparkContext

from penstock.errors import SparkLaunchError
from penstock.jobmanager.launching import SlotLaunch
from penstock.spark.failures import launch_error

_CANCEL_AGAIN = 0.2
_LOOK_FOR_RETRY = 0.5


class SparkJob:
    """A `LaunchHandle`: a thread that waits for the Spark job, and the means to cancel it."""

    def __init__(
        self,
        context: SparkContext,
        launch: SlotLaunch,
        body: Callable[[Iterable[int]], Iterable[Any]],
        on_end: Callable[[BaseException | None], None],
    ) -> None:
        self._context = context
        self._launch = launch
        self._body = body
        self._on_end = on_end
        self._tag = f"penstock-{launch.job_id}-{launch.attempt}-{uuid4().hex[:8]}"
        self._cancelling = threading.Lock()
        self._ended = threading.Event()
        self._retried = False

    def start(self) -> None:
        """Run the Spark job in the background. Only once."""
        # The thread has a JVM thread of its own, and the job's tag and group are set on that.
        InheritableThread(target=self._run, name=self._tag, daemon=True).start()
        if self._context.getConf().get("spark.stage.maxConsecutiveAttempts") != "1":
            self._in_background(self._forbid_retry)

    def cancel(self) -> None:
        """See `LaunchHandle`."""
        if self._cancelling.acquire(blocking=False):  # never released: once is enough
            self._in_background(self._cancel)

    def _run(self) -> None:
        error: BaseException | None = None
        try:
            context, slots = self._context, self._launch.slots
            context.setJobGroup(self._tag, self._launch.job_name)
            context.addJobTag(self._tag)
            tasks = context.parallelize(range(slots), slots).barrier().mapPartitions(self._body)
            _plan(tasks, self._launch.python)
            tasks.collect()
        except BaseException as raised:
            error = self._explain(raised)
        self._ended.set()
        self._on_end(error)

    def _explain(self, raised: BaseException) -> SparkLaunchError:
        told = launch_error(raised)
        if told.lasting or not self._retried:
            return told
        lost = SparkLaunchError("a slot failed or was lost")
        lost.__cause__ = raised
        return lost

    def _cancel(self) -> None:
        """Cancel until it has an effect: a job that Spark has not seen yet is not cancelled."""
        while not self._ended.is_set():
            try:
                self._context.cancelJobsWithTag(self._tag)
            except Exception:
                return  # the session is gone, and the job with it
            self._ended.wait(_CANCEL_AGAIN)

    def _forbid_retry(self) -> None:
        """Cancel the job when Spark starts a failed stage again.

        Sessions of ours are set up so that it does not; a session of the user's may. The launch
        has failed all the same, and its JobMaster starts the next attempt.
        """
        while not self._ended.wait(_LOOK_FOR_RETRY):
            try:
                self._retried = self._stage_attempt() > 0
            except Exception:
                return
            if self._retried:
                self.cancel()
                return

    def _stage_attempt(self) -> int:
        tracker = self._context.statusTracker()
        jobs = (tracker.getJobInfo(job) for job in tracker.getJobIdsForGroup(self._tag))
        stages = [stage for job in jobs if job is not None for stage in job.stageIds]
        infos = (tracker.getStageInfo(int(stage)) for stage in stages)
        return max((info.currentAttemptId for info in infos if info is not None), default=0)

    def _in_background(self, work: Callable[[], None]) -> None:
        threading.Thread(target=work, name=f"{self._tag}-{work.__name__}", daemon=True).start()


_python_lock = threading.Lock()


def _plan(tasks: RDD[Any], python: str | None) -> None:
    """Settle which Python runs `tasks`; None: the session's.

    PySpark reads the path off the context when it first plans the tasks, which `id` makes it do.
    """
    context = tasks.context
    with _python_lock:
        usual = context.pythonExec
        context.pythonExec = python or usual
        try:
            tasks.id()
        finally:
            context.pythonExec = usual
