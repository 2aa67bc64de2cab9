"""Marks: the order in which the state of a subtask was cut.

Checkpoints have numbers that grow. Between two of them the changelog cuts pieces of its own: a
piece comes after the checkpoint that was cut last, and before every later one.

>>> mark_of(7) < mark_of(7, piece=1) < mark_of(7, piece=2) < mark_of(8)
True
"""

from __future__ import annotations

_PIECES = 1 << 32


def mark_of(checkpoint: int, piece: int = 0) -> int:
    """The mark of a checkpoint's cut, or of the pieces that follow it, counted from 1."""
    return checkpoint * _PIECES + piece
