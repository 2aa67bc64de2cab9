"""Sources and sinks: the contracts, and the ones that come with Penstock."""

from penstock.connectors.client_sinks import PrintSink
from penstock.connectors.sink import (
    Committer,
    CommitterContext,
    Sink,
    SinkWriter,
    WriterContext,
)
from penstock.connectors.source import (
    EnumeratorContext,
    QueueEnumerator,
    ReaderContext,
    Source,
    SourceReader,
    SplitEnumerator,
)

__all__ = [
    "Committer",
    "CommitterContext",
    "EnumeratorContext",
    "PrintSink",
    "QueueEnumerator",
    "ReaderContext",
    "Sink",
    "SinkWriter",
    "Source",
    "SourceReader",
    "SplitEnumerator",
    "WriterContext",
]
