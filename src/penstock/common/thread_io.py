"""Slow work in one thread, beside a loop that must not wait for it."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar

T = TypeVar("T")
R = TypeVar("R")

_AT_ONCE = 4
"""Each may have a file in its hands: memory is bounded by so many."""


class ThreadIo:
    """Runs work in order, one piece at a time; results come back to the loop as mails."""

    def __init__(self, mail: Callable[[Callable[[], None]], None], name: str) -> None:
        self._mail = mail
        self._name = name
        self._executor = ThreadPoolExecutor(1, thread_name_prefix=name)

    def submit(self, work: Callable[[], Any], done: Callable[[Any, Any], None]) -> None:
        """Call `work` in the thread, then `done(result, error)` on the loop.

        Neither is called any more when the interpreter is about to end.
        """

        def run() -> None:
            try:
                result = work()
            except BaseException as error:
                # Any: whoever waits for the result must hear of it.
                failure = error
                self._mail(lambda: done(None, failure))
            else:
                self._mail(lambda: done(result, None))

        # The interpreter ends: Python takes no more work, and nobody waits for what it would give.
        with contextlib.suppress(RuntimeError):
            self._executor.submit(run)

    def each(self, work: Callable[[T], R], items: Iterable[T]) -> list[R]:
        """Call `work` with each of the items, some at a time; to be called from inside of work."""
        with ThreadPoolExecutor(_AT_ONCE, thread_name_prefix=f"{self._name}-each") as executor:
            return list(executor.map(work, items))

    def close(self) -> None:
        """Let the piece under way finish and forget the rest."""
        self._executor.shutdown(wait=True, cancel_futures=True)
