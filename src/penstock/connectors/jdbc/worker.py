"""A thread that talks to the database, so that the slot's loop never waits for it."""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable
from concurrent.futures import Future
from typing import Any

AHEAD = 8
"""Pieces of work that may wait; a writer whose worker has more takes no records."""


class Worker:
    """Does pieces of work in order. After one fails the rest fails in the same way."""

    def __init__(self, wake: Callable[[], None]) -> None:
        self._wake = wake
        self._work: queue.SimpleQueue[tuple[Callable[[], Any], Future[Any]] | None]
        self._work = queue.SimpleQueue()
        self._problem: BaseException | None = None
        self._thread = threading.Thread(target=self._run, name="penstock-database", daemon=True)
        self._thread.start()

    def submit(self, work: Callable[[], Any]) -> Future[Any]:
        future: Future[Any] = Future()
        self._work.put((work, future))
        return future

    def has_room(self) -> bool:
        self.check()
        return self._work.qsize() < AHEAD

    def check(self) -> None:
        """Raise what has failed."""
        if self._problem is not None:
            raise self._problem

    def close(self, last: Callable[[], None]) -> None:
        """Do `last` when what is under way is done; what waits is forgotten."""
        if self._problem is None:
            self._problem = RuntimeError("the writer is closed")
        self._work.put((last, Future()))
        self._work.put(None)
        self._thread.join(5.0)

    def _run(self) -> None:
        closing = False
        while (item := self._work.get()) is not None:
            work, future = item
            closing = self._work.qsize() == 1 and self._problem is not None
            try:
                if self._problem is not None and not closing:
                    raise self._problem
                future.set_result(work())
            except BaseException as error:
                self._problem = self._problem or error
                future.set_exception(error)
            self._wake()
