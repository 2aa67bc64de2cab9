"""Waiting for what must come: how long it takes is not what tests are about.

A machine that has other things to do may need minutes for what takes a second on a quiet one. So
all tests wait for the event, with one patience that is only there to end a test that hangs.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

PATIENCE = 300.0
"""Seconds."""


def until(condition: Callable[[], Any], what: str, patience: float = PATIENCE) -> Any:
    """Wait until `condition()` is true; what it returned."""
    deadline = time.monotonic() + patience
    while True:
        result = condition()
        if result:
            return result
        if time.monotonic() > deadline:
            raise AssertionError(f"not within {patience:g} s: {what}")
        time.sleep(0.02)
