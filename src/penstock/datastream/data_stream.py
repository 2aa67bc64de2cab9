"""All kinds of streams, by PyFlink's names."""

from penstock.datastream.cached_streams import CachedDataStream
from penstock.datastream.connected_streams import (
    BroadcastConnectedStream,
    BroadcastStream,
    ConnectedStreams,
)
from penstock.datastream.data_stream_sink import DataStreamSink
from penstock.datastream.keyed_stream import KeyedStream
from penstock.datastream.results import CloseableIterator
from penstock.datastream.streams import DataStream
from penstock.datastream.windowed_streams import AllWindowedStream, WindowedStream

__all__ = [
    "AllWindowedStream",
    "BroadcastConnectedStream",
    "BroadcastStream",
    "CachedDataStream",
    "CloseableIterator",
    "ConnectedStreams",
    "DataStream",
    "DataStreamSink",
    "KeyedStream",
    "WindowedStream",
]
