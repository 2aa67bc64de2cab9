"""A way to wake a loop that sleeps in a poll, from another thread."""

from __future__ import annotations

import contextlib
import select
import socket


class Wakeup:
    """A file descriptor that becomes readable when somebody calls `wake`."""

    def __init__(self) -> None:
        self._reader, self._writer = socket.socketpair()
        self._reader.setblocking(False)
        self._writer.setblocking(False)

    def fileno(self) -> int:
        return self._reader.fileno()

    def wake(self) -> None:
        # A full pipe wakes just as well, and after the end nobody needs waking.
        with contextlib.suppress(BlockingIOError, OSError):
            self._writer.send(b"\0")

    def clear(self) -> None:
        with contextlib.suppress(BlockingIOError):
            while self._reader.recv(4096):
                pass

    def sleep(self, timeout_ms: int) -> None:
        """Wait to be woken, at most `timeout_ms`."""
        select.select([self._reader], [], [], timeout_ms / 1000)
        self.clear()

    def close(self) -> None:
        self._reader.close()
        self._writer.close()
