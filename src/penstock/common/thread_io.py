"""Slow work in one thread, beside a loop that must not wait for it."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any


class ThreadIo:
    """Runs work in order, one piece at a time; results come back to the loop as mails."""

    def __init__(self, mail: Callable[[Callable[[], None]], None], name: str) -> None:
        self._mail = mail
        self._executor = ThreadPoolExecutor(1, thread_name_prefix=name)

    def submit(self, work: Callable[[], Any], done: Callable[[Any, Any], None]) -> None:
        """Call `work` in the thread, then `done(result, error)` on the loop.

        Neither is called any more when the interpreter is about to end.
        """

        def run() -> None:
            try:
                result = work()
            except Exception as error:
                failure = error
                self._mail(lambda: done(None, failure))
            else:
                self._mail(lambda: done(result, None))

        # The interpreter ends: Python takes no more work, and nobody waits for what it would give.
        with contextlib.suppress(RuntimeError):
            self._executor.submit(run)

    def close(self) -> None:
        """Let the piece under way finish and forget the rest."""
        self._executor.shutdown(wait=True, cancel_futures=True)
