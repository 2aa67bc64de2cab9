"""Modules of PyFlink's that Penstock does not have: importing one says what to use instead.

>>> import penstock.datastream.connectors.pulsar
Traceback (most recent call last):
    ...
ModuleNotFoundError: penstock.datastream.connectors.pulsar: Penstock has no connector for Pulsar: \
write one in Python, see "Write a source or a sink" (docs/write-a-connector.md)
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec
from types import ModuleType

_CONNECTORS = {
    "cassandra": "Cassandra",
    "elasticsearch": "Elasticsearch",
    "kinesis": "Kinesis",
    "mongodb": "MongoDB",
    "pubsub": "Pub/Sub",
    "pulsar": "Pulsar",
    "rabbitmq": "RabbitMQ",
}
_SCHEMA = "subclass DeserializationSchema or SerializationSchema of penstock.common"
_FILES = "penstock.datastream.connectors.file_system"
_FORMATS = {
    "avro": f"Penstock has no Avro: {_SCHEMA}",
    "csv": f"CSV files are StreamFormat.csv_format and CsvWriterFactory of {_FILES}; for messages "
    f"{_SCHEMA}",
    "json": f"JSON is JsonSchema of penstock.datastream.connectors.kafka, which gives dicts, or "
    f"StreamFormat.json_line_format of {_FILES}; for rows {_SCHEMA}",
    "orc": f"Penstock has no ORC: Parquet is ParquetWriterFactory of {_FILES}",
    "parquet": f"Parquet is BulkFormat.parquet_format and ParquetWriterFactory of {_FILES}",
}

ABSENT = {
    **{
        f"penstock.datastream.connectors.{module}": f"Penstock has no connector for {system}: "
        'write one in Python, see "Write a source or a sink" (docs/write-a-connector.md)'
        for module, system in _CONNECTORS.items()
    },
    **{f"penstock.datastream.formats.{name}": text for name, text in _FORMATS.items()},
}
"""What to use instead, by module."""


class _AbsentModules(MetaPathFinder):
    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if fullname in ABSENT:
            raise ModuleNotFoundError(f"{fullname}: {ABSENT[fullname]}", name=fullname)
        return None


def install() -> None:
    """Explain imports that nobody else can answer, from here on, in this process."""
    sys.meta_path.append(_AbsentModules())
