"""Sources and sinks, by PyFlink's names."""

from penstock.connectors.sink import Sink
from penstock.connectors.source import Source

__all__ = ["Sink", "Source"]
