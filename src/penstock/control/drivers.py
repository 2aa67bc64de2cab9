"""Where drivers write how to reach them: one file per process, readable by its user alone.

The folder is `PENSTOCK_CONTROL_DIR`, else `penstock` in the user's runtime directory, else in the
user's cache. What a driver that died has left behind is removed by whoever finds it.
"""

from __future__ import annotations

import contextlib
import json
import os
from dataclasses import asdict, dataclass
from pathlib import Path

from penstock.common.processes import is_alive


@dataclass(frozen=True)
class Driver:
    """How to reach a driver."""

    pid: int
    port: int
    token: str


def folder() -> Path:
    """Where the files are."""
    chosen = os.environ.get("PENSTOCK_CONTROL_DIR")
    if chosen:
        return Path(chosen)
    runtime = os.environ.get("XDG_RUNTIME_DIR")
    if runtime:
        return Path(runtime) / "penstock"
    cache = os.environ.get("XDG_CACHE_HOME")
    return (Path(cache) if cache else Path.home() / ".cache") / "penstock" / "drivers"


def announce(driver: Driver) -> Path:
    """Let the user's other processes know of this driver; OSError if that cannot be."""
    directory = folder()
    directory.mkdir(mode=0o700, parents=True, exist_ok=True)
    path = directory / f"{driver.pid}.json"
    # Written under another name first: whoever lists the folder finds whole files only.
    hidden = directory / f".{driver.pid}"
    hidden.unlink(missing_ok=True)
    handle = os.open(hidden, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(handle, "w") as file:
        json.dump(asdict(driver), file)
    hidden.replace(path)
    return path


def drivers() -> list[Driver]:
    """The drivers of this user that are alive, oldest process first."""
    found = []
    with contextlib.suppress(FileNotFoundError):
        for path in sorted(folder().glob("*.json")):
            driver = _read(path)
            if driver is None:
                continue
            if is_alive(driver.pid):
                found.append(driver)
            else:
                path.unlink(missing_ok=True)
    return sorted(found, key=lambda driver: driver.pid)


def _read(path: Path) -> Driver | None:
    try:
        return Driver(**json.loads(path.read_text()))
    except (OSError, ValueError, TypeError):
        # Removed since it was listed, or nothing of ours.
        return None
