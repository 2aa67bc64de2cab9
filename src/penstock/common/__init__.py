"""What all parts of a program share, by PyFlink's names."""

from penstock.common.configuration import Configuration
from penstock.common.job_client import JobClient, JobExecutionResult
from penstock.common.job_status import JobStatus
from penstock.common.typeinfo import TypeInformation, Types
from penstock.common.watermark_strategy import WatermarkStrategy

__all__ = [
    "Configuration",
    "JobClient",
    "JobExecutionResult",
    "JobStatus",
    "TypeInformation",
    "Types",
    "WatermarkStrategy",
]
