"""How a job ended."""

from __future__ import annotations

from dataclasses import dataclass

from penstock.common.job_id import JobID


@dataclass(frozen=True)
class JobExecutionResult:
    """How a job ended well."""

    job_id: str
    net_runtime_ms: int
    notes: tuple[str, ...] = ()
    """Lines worth knowing, for example about a damaged checkpoint that was passed over."""

    def get_job_id(self) -> JobID:
        """The id of the job."""
        return JobID(self.job_id)

    def get_net_runtime(self) -> int:
        """Milliseconds from start to end."""
        return self.net_runtime_ms
