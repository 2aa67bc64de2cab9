"""Printing, in a thread of its own: a terminal or a pipe that stands still holds nobody else up.

    printer = Printer(printed=job.client_moved)
    printer.put(sys.stdout, "a line\\n")    # returns at once
    printer.flush()                        # all of it is printed

The thread never writes into a pipe that has no room. It waits until there is some, and can be told
to give up then: a thread that hangs in a write cannot be, and takes the lock of the stream with it.
"""

from __future__ import annotations

import io
import queue
import select
import threading
from collections.abc import Callable, Iterator
from typing import TextIO

_PIECE = 1024
"""Characters that are written at once: at most the 4096 bytes that a writable pipe takes whole."""
_LOOK_MS = 100


class Printer:
    """Prints what it is given, in order. `put` and `flush` are called from one thread."""

    def __init__(self, printed: Callable[[], None]) -> None:
        """`printed` is called from the printing thread after every piece of work."""
        self._printed = printed
        self._texts: queue.SimpleQueue[tuple[TextIO, str]] = queue.SimpleQueue()
        self._changed = threading.Condition()
        self._left = 0
        self._given_up = False
        self._error: Exception | None = None
        self._thread: threading.Thread | None = None

    def put(self, stream: TextIO, text: str) -> None:
        """Have `text` printed. If something could not be printed before, that error is raised."""
        self._raise()
        with self._changed:
            self._left += 1
        self._texts.put((stream, text))
        if self._thread is None:
            # Started when it is needed: most jobs print nothing.
            self._thread = threading.Thread(target=self._run, name="penstock-print", daemon=True)
            self._thread.start()

    def backlog(self) -> int:
        """How much waits to be printed."""
        return self._left

    def flush(self, timeout_s: float | None = None) -> None:
        """Wait until everything is printed; what is not within `timeout_s` never will be."""
        with self._changed:
            if not self._changed.wait_for(lambda: self._left == 0, timeout_s):
                self._given_up = True
        self._raise()

    def _raise(self) -> None:
        if self._error is not None:
            raise self._error

    def _run(self) -> None:
        while True:
            stream, text = self._texts.get()
            try:
                self._print(stream, text)
            except Exception as error:
                self._error, self._given_up = error, True
            with self._changed:
                self._left -= 1
                self._changed.notify_all()
            self._printed()

    def _print(self, stream: TextIO, text: str) -> None:
        for piece in _pieces(text):
            while not (self._given_up or _has_room(stream)):
                pass
            if self._given_up:
                return
            stream.write(piece)
            stream.flush()


def _pieces(text: str) -> Iterator[str]:
    """Whole lines as far as they fit into a piece."""
    start = 0
    while start < len(text):
        end = start + _PIECE
        if end < len(text):
            end = text.rfind("\n", start, end) + 1 or end
        yield text[start:end]
        start = end


def _has_room(stream: TextIO) -> bool:
    """Whether a piece can be written now, after a short wait; True if nobody can tell."""
    try:
        descriptor = stream.fileno()
    except (io.UnsupportedOperation, AttributeError):
        return True
    watched = select.poll()
    watched.register(descriptor, select.POLLOUT)
    return bool(watched.poll(_LOOK_MS))
