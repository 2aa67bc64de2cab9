"""The memory of a job, seen from outside: all processes under the one that runs it."""

import contextlib
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass

import psutil


@dataclass(frozen=True)
class Memory:
    """Resident megabytes; the JVM's say more about its collector than about the job."""

    python: float
    java: float


def memory_of(process: subprocess.Popen[str]) -> Memory:
    """The resident memory of a process and all below it."""
    python = java = 0
    for member in _tree(process):
        with contextlib.suppress(psutil.NoSuchProcess, psutil.AccessDenied):
            if member.name() == "java":
                java += member.memory_info().rss
            else:
                python += member.memory_info().rss
    return Memory(python=python / 2**20, java=java / 2**20)


def end(process: subprocess.Popen[str]) -> None:
    """End a process and all that it started."""
    members = list(_tree(process))
    process.terminate()
    for member in psutil.wait_procs(members, timeout=10)[1]:
        with contextlib.suppress(psutil.NoSuchProcess):
            member.kill()
    process.wait()


def _tree(process: subprocess.Popen[str]) -> Iterator[psutil.Process]:
    with contextlib.suppress(psutil.NoSuchProcess):
        root = psutil.Process(process.pid)
        yield root
        yield from root.children(recursive=True)
