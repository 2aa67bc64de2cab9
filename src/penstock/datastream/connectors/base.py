"""What every source and every sink is, and how a sink may prepare the stream that it writes."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING

from penstock.connectors.delivery import DeliveryGuarantee
from penstock.connectors.sink import Sink
from penstock.connectors.source import Source

if TYPE_CHECKING:
    from penstock.datastream.streams import DataStream

__all__ = ["DeliveryGuarantee", "Sink", "Source", "StreamTransformer", "SupportsPreprocessing"]


class StreamTransformer(ABC):
    """Operators that belong to a sink and come before its writers."""

    @abstractmethod
    def apply(self, ds: DataStream) -> DataStream:
        """The stream that the sink is to write in place of `ds`."""


class SupportsPreprocessing(ABC):
    """A sink that transforms the stream before it writes it: `sink_to` applies the transformer."""

    @abstractmethod
    def get_transformer(self) -> StreamTransformer | None:
        """What comes before the sink; None: nothing."""
