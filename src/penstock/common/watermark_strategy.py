"""Watermark strategies: how event time is read off records."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class WatermarkStrategy:
    """Where a source's watermarks come from."""

    @staticmethod
    def no_watermarks() -> WatermarkStrategy:
        """None until the end of the input: then all event time has passed."""
        return WatermarkStrategy()
