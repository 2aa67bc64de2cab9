"""What every source and every sink is."""

from penstock.connectors.delivery import DeliveryGuarantee
from penstock.connectors.sink import Sink
from penstock.connectors.source import Source

__all__ = ["DeliveryGuarantee", "Sink", "Source"]
