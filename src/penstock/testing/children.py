"""Servers that tests start must not outlive them, however the tests end."""

from __future__ import annotations

import ctypes
import signal

START_SECONDS = 300.0
"""How long a server may need until it answers: only there to end what hangs."""

_PR_SET_PDEATHSIG = 1


def die_with_parent() -> None:
    """Called in a child before its program starts, on Linux: it is killed when its parent is."""
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
