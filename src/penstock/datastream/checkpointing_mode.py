"""Checkpointing modes, by PyFlink's name."""

from penstock.checkpoint.settings import CheckpointMode as CheckpointingMode

__all__ = ["CheckpointingMode"]
