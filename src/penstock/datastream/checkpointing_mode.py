"""Checkpointing modes, by PyFlink's name."""

from penstock.checkpoint.coordinator import CheckpointMode as CheckpointingMode

__all__ = ["CheckpointingMode"]
