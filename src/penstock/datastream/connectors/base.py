"""What every source and every sink is, and what may stand behind the one and before the other."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from penstock.connectors.bad_records import BadRecord
from penstock.connectors.delivery import DeliveryGuarantee
from penstock.connectors.sink import Sink
from penstock.connectors.source import Source
from penstock.datastream.functions import ProcessFunction
from penstock.datastream.output_tag import OutputTag

if TYPE_CHECKING:
    from penstock.datastream.streams import DataStream

__all__ = [
    "BadRecord",
    "DeliveryGuarantee",
    "DivertBadRecords",
    "Sink",
    "Source",
    "StreamTransformer",
    "SupportsPreprocessing",
]


class DivertBadRecords(ProcessFunction):
    """Sends each `BadRecord` of a source to a side output, and passes all other records on.

    ``stream = env.from_source(...).process(DivertBadRecords(tag))``; then
    ``stream.get_side_output(tag)`` has the bad ones.
    """

    def __init__(self, output_tag: OutputTag) -> None:
        self._tag = output_tag

    def process_element(self, value: Any, ctx: ProcessFunction.Context) -> Iterator[Any]:
        if isinstance(value, BadRecord):
            yield self._tag, value
        else:
            yield value


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
