"""Execution modes, by PyFlink's name."""

from __future__ import annotations

import enum


class RuntimeExecutionMode(enum.Enum):
    """Whether results come as the input does, or once at its end."""

    STREAMING = 0
    BATCH = 1
    AUTOMATIC = 2
