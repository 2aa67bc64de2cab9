"""The data generator source."""

from penstock.connectors.generator import DataGeneratorSource

__all__ = ["DataGeneratorSource"]
