"""Whether a process of this machine is alive."""

from __future__ import annotations

import os


def is_alive(pid: int) -> bool:
    """Whether there is a process with this id, whoever it belongs to."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True
