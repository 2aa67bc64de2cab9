"""Folders of local databases, and what killed processes have left of theirs.

A folder holds a file that its process has locked for as long as it lives; however the process ends,
the system lets the lock go. So whoever can lock that file of another folder knows that its owner is
gone, also where process numbers say nothing (containers) or have been given to somebody else.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import shutil
import tempfile
import threading
import time
from pathlib import Path

PREFIX = "penstock-rocksdb-"
_OWNER = "owner"
_YOUNG_SECONDS = 60.0
"""A folder that has just been made may not be locked yet."""

_swept: set[str] = set()
_sweeping = threading.Lock()


class OwnedFolder:
    """A new folder in `parent`, or where temporary files go; OSError if it cannot be made.

    The first one that a process makes in a place removes what killed processes have left there.
    """

    def __init__(self, parent: str | None) -> None:
        if parent is not None:
            Path(parent).mkdir(parents=True, exist_ok=True)
        place = os.path.abspath(parent or tempfile.gettempdir())
        with _sweeping:
            if place not in _swept:
                _swept.add(place)
                sweep(place)
        self.path = tempfile.mkdtemp(prefix=PREFIX, dir=place)
        self._owner = os.open(f"{self.path}/{_OWNER}", os.O_CREAT | os.O_RDWR, 0o600)
        # Where there are no locks nothing can be locked by others either, so nothing is swept.
        with contextlib.suppress(OSError):
            fcntl.flock(self._owner, fcntl.LOCK_EX)

    def remove(self) -> None:
        """Delete it with all that is in it."""
        shutil.rmtree(self.path, ignore_errors=True)
        os.close(self._owner)


def sweep(place: str) -> list[str]:
    """Remove the folders in `place` that this user's processes have left behind; their paths."""
    gone = []
    with contextlib.suppress(OSError):
        for entry in sorted(os.scandir(place), key=lambda entry: entry.name):
            if entry.name.startswith(PREFIX) and _is_abandoned(entry):
                shutil.rmtree(entry.path, ignore_errors=True)
                gone.append(entry.path)
    return gone


def _is_abandoned(entry: os.DirEntry[str]) -> bool:
    try:
        status = entry.stat(follow_symlinks=False)
        if not entry.is_dir(follow_symlinks=False) or status.st_uid != os.getuid():
            return False
        if abs(time.time() - status.st_mtime) < _YOUNG_SECONDS:
            return False
        owner = os.open(f"{entry.path}/{_OWNER}", os.O_RDWR)
    except FileNotFoundError:
        # Its process died before it had begun; what else has no owner is not ours to judge.
        return _is_empty(entry.path)
    except OSError:
        return False
    try:
        fcntl.flock(owner, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    finally:
        os.close(owner)
    return True


def _is_empty(folder: str) -> bool:
    try:
        return not os.listdir(folder)
    except OSError:
        return False
