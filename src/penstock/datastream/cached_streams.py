"""Streams whose records are kept by the program, so that its next jobs need not make them again.

The first job that uses a cached stream and ends well leaves the records of the stream with the
driver; later jobs of the same environment read them from there, and what is before the stream does
not run again. The records are in the driver's memory and travel with the program to every slot, so
a cache is for streams that end, and for results that are small beside what they are made from.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from penstock.datastream.program import CachedRecords
from penstock.datastream.streams import DataStream

if TYPE_CHECKING:
    from penstock.datastream.program import Upstream
    from penstock.datastream.stream_execution_environment import StreamExecutionEnvironment


class CachedDataStream(DataStream):
    """A stream that is computed once; made by `DataStream.cache()`."""

    def __init__(
        self,
        env: StreamExecutionEnvironment,
        upstreams: tuple[Upstream, ...],
        records: CachedRecords,
    ) -> None:
        super().__init__(env, upstreams)
        self._records = records

    def cache(self) -> CachedDataStream:
        """Itself: it is cached already."""
        return self

    def invalidate(self) -> None:
        """Forget the records; the next job that uses the stream computes and keeps them again."""
        self._records.values = None
