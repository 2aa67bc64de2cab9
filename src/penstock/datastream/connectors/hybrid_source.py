"""HybridSource: sources one after another, by PyFlink's names.

    archive = FileSource.for_record_stream_format(...).build()
    live = KafkaSource.builder()...set_starting_offsets(KafkaOffsetsInitializer.timestamp(end))
    source = HybridSource.builder(archive).add_source(live.build()).build()

Each source is read to its end before the next begins, by all readers; the last one may go on for
ever. A savepoint or a checkpoint knows which one is being read.
"""

from __future__ import annotations

from penstock.connectors.hybrid import SourcesInTurn
from penstock.connectors.source import Source
from penstock.errors import ProgramError

__all__ = ["HybridSource", "HybridSourceBuilder"]


class HybridSource(SourcesInTurn):
    """Reads sources one after another; made by its builder."""

    @staticmethod
    def builder(first_source: Source) -> HybridSourceBuilder:
        """A builder whose first source is this."""
        return HybridSourceBuilder().add_source(first_source)


class HybridSourceBuilder:
    """Builds a HybridSource."""

    def __init__(self) -> None:
        self._sources: list[Source] = []

    def add_source(self, source: Source) -> HybridSourceBuilder:
        """Read this one when the ones before it have ended."""
        if not isinstance(source, Source):
            raise ProgramError(f"add_source() needs a Source, not a {type(source).__name__}")
        self._sources.append(source)
        return self

    def build(self) -> HybridSource:
        """The source."""
        return HybridSource(self._sources)
