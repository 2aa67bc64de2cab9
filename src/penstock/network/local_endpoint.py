"""A slot's address for slots on the same machine: a socket file that only its user can reach.

Frames between two slots of one machine need no encryption: whoever may open the file may as well
read the memory of the process behind it. Encrypting and decrypting them cost a twenty-fifth of a
job's time. Whether a peer is on the same machine is not guessed from names: it is if the file is
there and ours.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import stat
import tempfile
import time
from pathlib import Path

from penstock.common.processes import is_alive

_PREFIX = "penstock-slot-"
_LONGEST_PATH = 100
"""The system's limit for the path of a socket is a little above a hundred bytes."""
_STALE_SECONDS = 3600


class LocalEndpoint:
    """A folder of mode 0700 with the path of one socket; `path` is None if there can be none."""

    def __init__(self) -> None:
        self._folder: Path | None = None
        self.path: str | None = None
        with contextlib.suppress(OSError):
            _sweep(Path(tempfile.gettempdir()))
            # The name holds the process, so that a later one sees whether it is still wanted.
            self._folder = Path(tempfile.mkdtemp(prefix=f"{_PREFIX}{os.getpid()}-"))
            path = str(self._folder / "s")
            if len(os.fsencode(path)) <= _LONGEST_PATH:
                self.path = path

    def close(self) -> None:
        if self._folder is not None:
            shutil.rmtree(self._folder, ignore_errors=True)


def is_reachable(path: str) -> bool:
    """Whether there is a socket of this user's at `path`, on this machine."""
    try:
        found = os.stat(path)
    except OSError:
        return False
    return stat.S_ISSOCK(found.st_mode) and found.st_uid == os.getuid()


def _sweep(folder: Path) -> None:
    """Remove what processes that were killed left here long ago."""
    for left in folder.glob(f"{_PREFIX}*"):
        with contextlib.suppress(OSError, ValueError, IndexError):
            pid = int(left.name.removeprefix(_PREFIX).split("-")[0])
            status = left.stat()
            old = time.time() - status.st_mtime > _STALE_SECONDS
            if old and status.st_uid == os.getuid() and not is_alive(pid):
                shutil.rmtree(left, ignore_errors=True)
