"""The JobClient of a job that runs in this driver."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from concurrent.futures import Future
from typing import TYPE_CHECKING, Any, Protocol

from penstock.common.accumulators import checked_result
from penstock.common.completable_future import CompletableFuture
from penstock.common.job_client import JobClient, JobExecutionResult
from penstock.common.job_id import JobID
from penstock.common.job_status import JobStatus
from penstock.common.metrics import MetricReading
from penstock.errors import CheckpointError, PenstockError, ProgramError

if TYPE_CHECKING:
    # Building a program needs no network: it is imported when a job is submitted.
    from penstock.checkpoint.history import CheckpointRecord
    from penstock.graph.execution_graph import SubtaskId
    from penstock.graph.job_graph import JobGraph
    from penstock.jobmanager.job import Job
    from penstock.jobmanager.live_rescale import RescaleRequest
    from penstock.jobmanager.manual_requests import Answer
    from penstock.jobmanager.progress import Progress
    from penstock.jobmanager.savepoints import SavepointRequest
    from penstock.jobmanager.watermarks import WatermarkExplanation


class Runner(Protocol):
    """What runs a job, on a cluster or in a test. Its methods may be called from any thread."""

    @property
    def job(self) -> Job: ...

    @property
    def result(self) -> Future[JobExecutionResult]: ...

    def status(self) -> JobStatus: ...

    def progress(self) -> Progress: ...

    def cancel(self) -> None: ...

    def client_moved(self) -> None: ...

    def trigger_checkpoint(self, answer: Answer) -> None: ...

    def savepoint(self, request: SavepointRequest) -> None: ...

    def rescale(self, request: RescaleRequest) -> None: ...


class RunningJob(JobClient):
    """A job started by this program."""

    def __init__(self, runner: Runner) -> None:
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

    def trigger_checkpoint(self) -> CompletableFuture[int]:
        asked: Future[int] = Future()

        def answer(checkpoint: int | None, error: CheckpointError | None) -> None:
            if checkpoint is not None:
                asked.set_result(checkpoint)
            else:
                asked.set_exception(error)

        self._runner.trigger_checkpoint(answer)
        return CompletableFuture.following(asked, lambda ended: ended.result())

    def trigger_savepoint(self, savepoint_directory: str | None = None) -> CompletableFuture[str]:
        return self._savepoint(savepoint_directory)

    def stop_with_savepoint(
        self, advance_to_end_of_event_time: bool, savepoint_directory: str | None = None
    ) -> CompletableFuture[str]:
        return self._savepoint(savepoint_directory, True, advance_to_end_of_event_time)

    def _savepoint(
        self, directory: str | None, stop: bool = False, drain: bool = False
    ) -> CompletableFuture[str]:
        from penstock.jobmanager.savepoints import SavepointRequest

        asked: Future[str] = Future()

        def answer(path: str | None, error: CheckpointError | None) -> None:
            if path is not None:
                asked.set_result(path)
            else:
                asked.set_exception(error)

        directory = directory or self._runner.job.savepoint_directory
        if directory is None:
            message = "there is no directory for savepoints: name one, or set state.savepoints.dir"
            answer(None, CheckpointError(message))
        elif directory.startswith("memory:"):
            message = f"{directory} ends with the process: savepoints need a directory that stays"
            answer(None, CheckpointError(message))
        else:
            # Slots may have other working directories.
            whole = directory if "://" in directory else os.path.abspath(directory)
            self._runner.savepoint(SavepointRequest(whole, answer, stop, drain))
        return CompletableFuture.following(asked, lambda ended: ended.result())

    def rescale(self, parallelism: int) -> CompletableFuture[None]:
        from penstock.jobmanager.live_rescale import RescaleRequest

        asked: Future[None] = Future()

        def answer(error: PenstockError | None) -> None:
            if error is None:
                asked.set_result(None)
            else:
                asked.set_exception(error)

        try:
            graph = self._runner.job.at(parallelism)
        except PenstockError as error:
            answer(error)
        else:
            self._runner.rescale(RescaleRequest(graph, answer))
        return CompletableFuture.following(asked, lambda ended: ended.result())

    def get_checkpoint_history(self) -> list[CheckpointRecord[SubtaskId]]:
        return list(self._runner.progress().checkpoints)

    def get_accumulators(self) -> CompletableFuture[dict[str, Any]]:
        from penstock.jobmanager.reports import accumulator_results

        future: Future[dict[str, Any]] = Future()
        results = accumulator_results(self._runner.progress().reports)
        try:
            future.set_result({name: checked_result(name, results) for name in results})
        except ProgramError as error:
            future.set_exception(error)
        return CompletableFuture.following(future, lambda ended: ended.result())

    def metrics(self) -> list[MetricReading]:
        from penstock.jobmanager.reports import readings_of

        return list(readings_of(self._runner.progress().reports))

    def explain_watermark(self) -> list[WatermarkExplanation]:
        """Why event time is where it is: for every subtask what holds it back, and since when."""
        from penstock.jobmanager.watermarks import explain_watermarks

        return explain_watermarks(self._runner.job.graph, self._runner.progress().metrics)

    def client_moved(self) -> None:
        self._runner.client_moved()

    def on_end(self, action: Callable[[], None]) -> None:
        self._runner.result.add_done_callback(lambda _: action())

    def result(self) -> JobExecutionResult:
        """Wait for the end. Ctrl-C cancels the job before it is passed on; a second one does not
        wait for that."""
        ended = threading.Event()
        self._runner.result.add_done_callback(lambda _: ended.set())
        try:
            _wait(ended)
        except KeyboardInterrupt:
            self._runner.cancel()
            _wait(ended)
            raise
        return self._runner.result.result()


def _wait(ended: threading.Event) -> None:
    # In slices: an untimed wait cannot be interrupted on every platform.
    while not ended.wait(0.2):
        pass
