"""Sources and sinks, by PyFlink's names."""

from importlib import import_module
from typing import Any

from penstock.connectors.delivery import DeliveryGuarantee
from penstock.connectors.sink import Sink
from penstock.connectors.source import Source

__all__ = ["DeliveryGuarantee", "Sink", "Source"]

# Older programs import these from here; a connector is loaded when one of them is asked for.
_ELSEWHERE = {
    "FileSink": "file_system",
    "FileSource": "file_system",
    "FlinkKafkaConsumer": "kafka",
    "FlinkKafkaProducer": "kafka",
    "JdbcConnectionOptions": "jdbc",
    "JdbcExecutionOptions": "jdbc",
    "JdbcSink": "jdbc",
    "NumberSequenceSource": "number_seq",
    "StreamFormat": "file_system",
    "StreamingFileSink": "file_system",
}


def __getattr__(name: str) -> Any:
    if name not in _ELSEWHERE:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_ELSEWHERE[name]}"), name)
