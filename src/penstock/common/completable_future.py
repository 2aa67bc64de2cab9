"""A future of PyFlink's name: it can be waited for in a thread and awaited in asyncio.

>>> CompletableFuture.completed(7).result()
7
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from concurrent.futures import Future
from typing import Any, TypeVar

T = TypeVar("T")
U = TypeVar("U")


class CompletableFuture(Future[T]):
    """The answer to a request to a job, some day."""

    @staticmethod
    def completed(value: U) -> CompletableFuture[U]:
        """One that is done."""
        future: CompletableFuture[U] = CompletableFuture()
        future.set_result(value)
        return future

    @staticmethod
    def following(other: Future[Any], result: Callable[[Future[Any]], U]) -> CompletableFuture[U]:
        """Done when `other` is, with what `result` makes of it or the exception that it raises.

        It cannot be cancelled: nobody would stop what `other` stands for.
        """
        future: CompletableFuture[U] = CompletableFuture()
        future.set_running_or_notify_cancel()

        def copy(done: Future[Any]) -> None:
            try:
                future.set_result(result(done))
            except BaseException as error:
                future.set_exception(error)

        other.add_done_callback(copy)
        return future

    def __await__(self) -> Generator[Any, None, T]:
        # Imported where it is used: programs that await have it, for others it is a heavy import.
        import asyncio

        return asyncio.wrap_future(self).__await__()
