"""Where drivers write how to reach them: one file per process, readable by its user alone.

The folder is `PENSTOCK_CONTROL_DIR`, else `penstock` in the user's runtime directory, else in the
user's cache. Several hosts may share it: a file says where its driver runs, and only a process
there can tell that the driver died, and removes the file.
"""

from __future__ import annotations

import contextlib
import json
import os
import socket
from dataclasses import asdict, dataclass, field
from functools import cache
from pathlib import Path

from penstock.common.processes import is_alive


@cache
def this_host() -> str:
    """The name of this host."""
    return socket.gethostname()


@cache
def this_boot() -> str:
    """What changes when this host is started anew; empty where the system does not tell."""
    with contextlib.suppress(OSError):
        return Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    return ""


@cache
def this_container() -> str:
    """What processes have in common that see each other's ids and loopback interface."""
    with contextlib.suppress(OSError):
        return " ".join(os.readlink(f"/proc/self/ns/{kind}") for kind in ("pid", "net"))
    return ""


@dataclass(frozen=True)
class Driver:
    """How to reach a driver."""

    pid: int
    port: int
    token: str
    host: str = field(default_factory=this_host)
    boot: str = field(default_factory=this_boot)
    container: str = field(default_factory=this_container)

    @property
    def is_here(self) -> bool:
        """Whether this process can reach it."""
        here = (this_host(), this_boot(), this_container())
        return (self.host, self.boot, self.container) == here

    def is_dead(self) -> bool:
        """Whether it surely ended: of drivers on other hosts nobody here knows."""
        if self.host == this_host() and self.boot != this_boot():
            return True
        return self.is_here and not is_alive(self.pid)


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
    name = f"{driver.host}-{driver.pid}"
    path = directory / f"{name}.json"
    # Written under another name first: whoever lists the folder finds whole files only.
    hidden = directory / f".{name}"
    hidden.unlink(missing_ok=True)
    handle = os.open(hidden, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(handle, "w") as file:
        json.dump(asdict(driver), file)
    hidden.replace(path)
    return path


def drivers() -> list[Driver]:
    """The drivers of this user that are alive here or run elsewhere, oldest process first."""
    found = []
    with contextlib.suppress(FileNotFoundError):
        for path in sorted(folder().glob("*.json")):
            driver = _read(path)
            if driver is None:
                continue
            if driver.is_dead():
                path.unlink(missing_ok=True)
            else:
                found.append(driver)
    return sorted(found, key=lambda driver: driver.pid)


def _read(path: Path) -> Driver | None:
    try:
        return Driver(**json.loads(path.read_text()))
    except (OSError, ValueError, TypeError):
        # Removed since it was listed, or nothing of ours.
        return None
