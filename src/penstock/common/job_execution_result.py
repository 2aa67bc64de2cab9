"""How a job ended well."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from penstock.common.accumulators import checked_result
from penstock.common.job_id import JobID
from penstock.common.metrics import MetricReading


@dataclass(frozen=True)
class JobExecutionResult:
    """What is known of a job that has finished."""

    job_id: str
    net_runtime_ms: int
    notes: tuple[str, ...] = ()
    """Lines worth knowing, for example about a damaged checkpoint that was passed over."""
    metrics: tuple[MetricReading, ...] = ()
    """The metrics of user functions as they were at the end of their input."""
    accumulators: Mapping[str, Any] = field(default_factory=dict)

    def get_job_id(self) -> JobID:
        """The id of the job."""
        return JobID(self.job_id)

    def get_net_runtime(self) -> int:
        """Milliseconds from start to end."""
        return self.net_runtime_ms

    def get_accumulator_result(self, accumulator_name: str) -> Any:
        """The result of one accumulator over all subtasks of the last attempt."""
        return checked_result(accumulator_name, self.accumulators)

    def get_all_accumulator_results(self) -> dict[str, Any]:
        """The results of all accumulators by name."""
        return {name: checked_result(name, self.accumulators) for name in self.accumulators}
