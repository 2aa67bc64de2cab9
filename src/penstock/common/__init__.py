"""What all parts of a program share, by PyFlink's names."""

from penstock.common.accumulators import (
    Accumulator,
    AverageAccumulator,
    DoubleCounter,
    DoubleMaximum,
    DoubleMinimum,
    Histogram,
    IntCounter,
    IntMaximum,
    IntMinimum,
    ListAccumulator,
    LongCounter,
    LongMaximum,
    LongMinimum,
)
from penstock.common.configuration import Configuration
from penstock.common.job_client import JobClient
from penstock.common.job_execution_result import JobExecutionResult
from penstock.common.job_status import JobStatus
from penstock.common.metrics import DistributionValue, MeterValue, MetricReading
from penstock.common.typeinfo import TypeInformation, Types
from penstock.common.watermark_strategy import WatermarkStrategy

__all__ = [
    "Accumulator",
    "AverageAccumulator",
    "Configuration",
    "DistributionValue",
    "DoubleCounter",
    "DoubleMaximum",
    "DoubleMinimum",
    "Histogram",
    "IntCounter",
    "IntMaximum",
    "IntMinimum",
    "JobClient",
    "JobExecutionResult",
    "JobStatus",
    "ListAccumulator",
    "LongCounter",
    "LongMaximum",
    "LongMinimum",
    "MeterValue",
    "MetricReading",
    "TypeInformation",
    "Types",
    "WatermarkStrategy",
]
