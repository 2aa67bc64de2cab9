"""The number sequence source."""

from penstock.connectors.generator import NumberSequenceSource

__all__ = ["NumberSequenceSource"]
