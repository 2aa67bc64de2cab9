"""A client's handle on a job."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

from penstock.common.completable_future import CompletableFuture
from penstock.common.job_execution_result import JobExecutionResult
from penstock.common.job_id import JobID
from penstock.common.job_status import JobStatus
from penstock.common.metrics import MetricReading

__all__ = ["JobClient", "JobExecutionResult"]


class JobClient(ABC):
    """Asks about a job and cancels it."""

    @abstractmethod
    def get_job_id(self) -> JobID:
        """The id of the job."""

    @abstractmethod
    def get_job_status(self) -> CompletableFuture[JobStatus]:
        """Where the job is in its life."""

    @abstractmethod
    def cancel(self) -> CompletableFuture[None]:
        """Cancel the job; the future is done when nothing of it is left."""

    @abstractmethod
    def get_job_execution_result(self) -> CompletableFuture[JobExecutionResult]:
        """Done when the job is; its exception is what the job failed of."""

    @abstractmethod
    def progress(self) -> Any:
        """A picture of the running job (`penstock.jobmanager.progress.Progress`)."""

    @abstractmethod
    def trigger_checkpoint(self) -> CompletableFuture[int]:
        """Ask for a checkpoint now; its id when it is complete, CheckpointError if it fails."""

    @abstractmethod
    def trigger_savepoint(self, savepoint_directory: str | None = None) -> CompletableFuture[str]:
        """Take a savepoint in a new folder of the directory (`state.savepoints.dir` without one).

        Its path when it is complete, CheckpointError if it fails. The job goes on.
        """

    @abstractmethod
    def stop_with_savepoint(
        self, advance_to_end_of_event_time: bool, savepoint_directory: str | None = None
    ) -> CompletableFuture[str]:
        """Take a savepoint, commit the output before it, and finish the job; the path.

        With `advance_to_end_of_event_time` every timer fires and every window closes before: for
        a job that is to end for good. CheckpointError if it fails; the job goes on then.
        """

    @abstractmethod
    def rescale(self, parallelism: int) -> CompletableFuture[None]:
        """Go on at another parallelism, from a checkpoint that is taken for it.

        Done when the job runs there. Operators that set a parallelism of their own keep it.
        InvalidParallelismError, ProgramError or RescaleError says why it cannot be; the job goes
        on as before then. It needs checkpoints, and counts as no failure.
        """

    @abstractmethod
    def get_checkpoint_history(self) -> list[Any]:
        """The last checkpoints, oldest first (`penstock.checkpoint.history.CheckpointRecord`)."""

    @abstractmethod
    def get_accumulators(self) -> CompletableFuture[dict[str, Any]]:
        """The results of all accumulators so far, by name, over all subtasks."""

    @abstractmethod
    def metrics(self) -> list[MetricReading]:
        """The metrics that user functions registered, as they were a moment ago."""

    @abstractmethod
    def explain_watermark(self) -> list[Any]:
        """Why event time stands where it does (`penstock.jobmanager.watermarks`).

        For every subtask: its watermark, which split or channel holds it back, since when, and
        what would let it go on.
        """
