"""Asynchronous calls in one event loop of their own, beside a loop that must not wait for them."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Awaitable, Callable
from typing import Any


class ThreadCalls:
    """Runs coroutines in a thread that starts with the first; results come back as mails."""

    def __init__(self, mail: Callable[[Callable[[], None]], None], name: str) -> None:
        self._mail = mail
        self._name = name
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread: threading.Thread | None = None

    def submit(
        self, call: Callable[[], Awaitable[Any]], done: Callable[[Any, Any], None]
    ) -> Callable[[], None]:
        """Await `call()`, then `done(result, error)` on the slot's loop; gives a way to cancel."""
        loop = self._running()

        async def run() -> None:
            try:
                result = await call()
            except asyncio.CancelledError:
                raise
            except Exception as error:
                failure = error
                self._mail(lambda: done(None, failure))
            else:
                self._mail(lambda: done(result, None))

        future = asyncio.run_coroutine_threadsafe(run(), loop)
        return lambda: void(future.cancel())

    def _running(self) -> asyncio.AbstractEventLoop:
        if self._loop is None:
            self._loop = asyncio.new_event_loop()
            self._thread = threading.Thread(target=self._run, name=self._name, daemon=True)
            self._thread.start()
        return self._loop

    def _run(self) -> None:
        assert self._loop is not None
        asyncio.set_event_loop(self._loop)
        try:
            self._loop.run_forever()
        finally:
            self._loop.close()

    def close(self) -> None:
        """Stop; calls under way are given up."""
        if self._loop is not None and self._thread is not None:
            self._loop.call_soon_threadsafe(self._loop.stop)
            # A call that blocks the thread must not keep the process: the thread is a daemon.
            self._thread.join(timeout=2)


def void(_: object) -> None:
    """Nothing, whatever was done."""
