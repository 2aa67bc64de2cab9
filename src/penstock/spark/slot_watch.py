"""A slot's guard: its process ends as soon as nobody is left to end it.

A slot is busy in one function call for days. If its executor dies meanwhile, nothing that the
slot waits for tells it so, and it would live on and write to the outside. Three things end it:

- the kernel, when the parent process (`pyspark.daemon`) dies: `PR_SET_PDEATHSIG`, Linux only;
- SIGHUP, which the daemon sends when its JVM goes away: the default action must be in place;
- a thread that polls the socket to the JVM for hang-up, and the parent's pid.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import select
import signal
import sys
import threading
from collections.abc import Iterator

_PR_SET_PDEATHSIG = 1
_PARENT_CHECK_MS = 500
# Linux reports a peer that closed as RDHUP; elsewhere it is HUP, which is always reported.
_HANG_UP = getattr(select, "POLLRDHUP", 0) | select.POLLHUP | select.POLLERR
_EXIT_CODE = 1


@contextlib.contextmanager
def guarded() -> Iterator[None]:
    """While the block runs, the process exits at once when its executor is gone.

    Leaves nothing behind: Spark gives the process to other tasks afterwards.
    """
    _die_with_parent()
    if threading.current_thread() is threading.main_thread():
        signal.signal(signal.SIGHUP, signal.SIG_DFL)
    wake_read, wake_write = os.pipe()
    watcher = threading.Thread(
        target=_watch,
        args=(_jvm_socket(), wake_read, os.getppid()),
        name="penstock-slot-watch",
        daemon=True,
    )
    watcher.start()
    try:
        yield
    finally:
        os.close(wake_write)  # hang-up on the read end wakes the watcher
        watcher.join()
        os.close(wake_read)


def _watch(jvm_socket: int | None, wake: int, parent: int) -> None:
    poll = select.poll()
    poll.register(wake, 0)
    if jvm_socket is not None:
        poll.register(jvm_socket, _HANG_UP)
    while True:
        for fd, _ in poll.poll(_PARENT_CHECK_MS):
            if fd == wake:
                return
            os._exit(_EXIT_CODE)
        if os.getppid() != parent:
            os._exit(_EXIT_CODE)


def _die_with_parent() -> None:
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)


def _jvm_socket() -> int | None:
    """The socket over which the JVM feeds this worker.

    PySpark does not offer it, so it is looked up in the frame of `pyspark.worker.main(infile,
    outfile)` below us. Not found (another PySpark), the two other guards remain.
    """
    frame = sys._getframe()
    while frame.f_back is not None:
        frame = frame.f_back
        if frame.f_globals.get("__name__") == "pyspark.worker" and "infile" in frame.f_locals:
            return int(frame.f_locals["infile"].fileno())
    return None
