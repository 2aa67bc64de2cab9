"""The DataStream API, by PyFlink's names."""

from penstock.datastream.checkpoint_config import CheckpointConfig
from penstock.datastream.checkpoint_storage import (
    CheckpointStorage,
    CustomCheckpointStorage,
    FileSystemCheckpointStorage,
    JobManagerCheckpointStorage,
)
from penstock.datastream.checkpointing_mode import CheckpointingMode
from penstock.datastream.data_stream import DataStream, DataStreamSink, KeyedStream
from penstock.datastream.execution_mode import RuntimeExecutionMode
from penstock.datastream.functions import (
    AggregateFunction,
    FilterFunction,
    FlatMapFunction,
    KeyedProcessFunction,
    KeySelector,
    MapFunction,
    Partitioner,
    ReduceFunction,
    RuntimeContext,
)
from penstock.datastream.results import CloseableIterator
from penstock.datastream.stream_execution_environment import StreamExecutionEnvironment
from penstock.datastream.time_characteristic import TimeCharacteristic
from penstock.runtime.functions import TimeDomain, TimerService

__all__ = [
    "AggregateFunction",
    "CheckpointConfig",
    "CheckpointStorage",
    "CheckpointingMode",
    "CloseableIterator",
    "CustomCheckpointStorage",
    "DataStream",
    "DataStreamSink",
    "FileSystemCheckpointStorage",
    "FilterFunction",
    "FlatMapFunction",
    "JobManagerCheckpointStorage",
    "KeySelector",
    "KeyedProcessFunction",
    "KeyedStream",
    "MapFunction",
    "Partitioner",
    "ReduceFunction",
    "RuntimeContext",
    "RuntimeExecutionMode",
    "StreamExecutionEnvironment",
    "TimeCharacteristic",
    "TimeDomain",
    "TimerService",
]
