"""The DataStream API, by PyFlink's names."""

from penstock.datastream.checkpointing_mode import CheckpointingMode
from penstock.datastream.data_stream import DataStream, DataStreamSink, KeyedStream
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
    SinkFunction,
)
from penstock.datastream.results import CloseableIterator
from penstock.datastream.stream_execution_environment import StreamExecutionEnvironment
from penstock.runtime.functions import TimeDomain, TimerService

__all__ = [
    "AggregateFunction",
    "CheckpointingMode",
    "CloseableIterator",
    "DataStream",
    "DataStreamSink",
    "FilterFunction",
    "FlatMapFunction",
    "KeySelector",
    "KeyedProcessFunction",
    "KeyedStream",
    "MapFunction",
    "Partitioner",
    "ReduceFunction",
    "RuntimeContext",
    "SinkFunction",
    "StreamExecutionEnvironment",
    "TimeDomain",
    "TimerService",
]
