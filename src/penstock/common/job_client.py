"""A client's handle on a job."""

from __future__ import annotations

from abc import ABC, abstractmethod
from concurrent.futures import Future
from dataclasses import dataclass
from typing import Any

from penstock.common.job_status import JobStatus


@dataclass(frozen=True)
class JobExecutionResult:
    """How a job ended well."""

    job_id: str
    net_runtime_ms: int
    notes: tuple[str, ...] = ()
    """Lines worth knowing, for example about a damaged checkpoint that was passed over."""

    def get_job_id(self) -> str:
        return self.job_id

    def get_net_runtime(self) -> int:
        """Milliseconds from start to end."""
        return self.net_runtime_ms


class JobClient(ABC):
    """Asks about a job and cancels it."""

    @abstractmethod
    def get_job_id(self) -> str: ...

    @abstractmethod
    def get_job_status(self) -> Future[JobStatus]: ...

    @abstractmethod
    def cancel(self) -> Future[None]:
        """Cancel the job; the future is done when nothing of it is left."""

    @abstractmethod
    def get_job_execution_result(self) -> Future[JobExecutionResult]:
        """Done when the job is; its exception is what the job failed of."""

    @abstractmethod
    def progress(self) -> Any:
        """A picture of the running job (`penstock.jobmanager.progress.Progress`)."""
