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
from penstock.common.completable_future import CompletableFuture
from penstock.common.config_options import ConfigOption, ConfigOptions
from penstock.common.configuration import Configuration
from penstock.common.execution_config import ExecutionConfig
from penstock.common.input_dependency_constraint import InputDependencyConstraint
from penstock.common.job_client import JobClient
from penstock.common.job_execution_result import JobExecutionResult
from penstock.common.job_id import JobID
from penstock.common.job_status import JobStatus
from penstock.common.metrics import DistributionValue, MeterValue, MetricReading
from penstock.common.restart_strategy import RestartStrategies, RestartStrategyConfiguration
from penstock.common.serialization import (
    ByteArraySchema,
    DeserializationSchema,
    Encoder,
    SerializationSchema,
    SimpleStringSchema,
)
from penstock.common.serializer import TypeSerializer
from penstock.common.time import Duration, Instant, Time
from penstock.common.typeinfo import TypeInformation, Types
from penstock.common.types import Row, RowKind
from penstock.common.watermark_strategy import WatermarkStrategy

__all__ = [
    "Accumulator",
    "AverageAccumulator",
    "ByteArraySchema",
    "CompletableFuture",
    "ConfigOption",
    "ConfigOptions",
    "Configuration",
    "DeserializationSchema",
    "DistributionValue",
    "DoubleCounter",
    "DoubleMaximum",
    "DoubleMinimum",
    "Duration",
    "Encoder",
    "ExecutionConfig",
    "Histogram",
    "InputDependencyConstraint",
    "Instant",
    "IntCounter",
    "IntMaximum",
    "IntMinimum",
    "JobClient",
    "JobExecutionResult",
    "JobID",
    "JobStatus",
    "ListAccumulator",
    "LongCounter",
    "LongMaximum",
    "LongMinimum",
    "MeterValue",
    "MetricReading",
    "RestartStrategies",
    "RestartStrategyConfiguration",
    "Row",
    "RowKind",
    "SerializationSchema",
    "SimpleStringSchema",
    "Time",
    "TypeInformation",
    "TypeSerializer",
    "Types",
    "WatermarkStrategy",
]
