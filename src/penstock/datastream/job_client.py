"""The JobClient of a job that runs in this driver."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable
from typing import TYPE_CHECKING

from penstock.common.completable_future import CompletableFuture
from penstock.common.job_client import JobClient, JobExecutionResult
from penstock.common.job_id import JobID
from penstock.common.job_status import JobStatus

if TYPE_CHECKING:
    # Building a program needs no network: it is imported when a job is submitted.
    from penstock.graph.job_graph import JobGraph
    from penstock.jobmanager.progress import Progress
    from penstock.jobmanager.runner import JobRunner

_INTERRUPT_SECONDS = 2.0


class RunningJob(JobClient):
    """A job started by this program."""

    def __init__(self, runner: JobRunner) -> None:
        self._runner = runner

    @property
    def graph(self) -> JobGraph:
        """The chained program that runs."""
        return self._runner.job.graph.job

    def get_job_id(self) -> JobID:
        return JobID(self._runner.job.id)

    def get_job_status(self) -> CompletableFuture[JobStatus]:
        return CompletableFuture.completed(self._runner.status())

    def cancel(self) -> CompletableFuture[None]:
        future = CompletableFuture.following(self._runner.result, lambda _: None)
        self._runner.cancel()
        return future

    def get_job_execution_result(self) -> CompletableFuture[JobExecutionResult]:
        return CompletableFuture.following(self._runner.result, lambda ended: ended.result())

    def progress(self) -> Progress:
        return self._runner.progress()

    def client_moved(self) -> None:
        self._runner.client_moved()

    def on_end(self, action: Callable[[], None]) -> None:
        self._runner.result.add_done_callback(lambda _: action())

    def result(self) -> JobExecutionResult:
        """Wait for the end. Ctrl-C cancels the job before it is passed on."""
        ended = threading.Event()
        self._runner.result.add_done_callback(lambda _: ended.set())
        try:
            # In slices: an untimed wait cannot be interrupted on every platform.
            while not ended.wait(0.2):
                pass
        except KeyboardInterrupt:
            with contextlib.suppress(Exception):
                self.cancel().result(_INTERRUPT_SECONDS)
            raise
        return self._runner.result.result()
