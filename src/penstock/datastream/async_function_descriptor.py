"""An asynchronous function and how it is called, by PyFlink's name."""

from __future__ import annotations

import enum
import inspect

from penstock.common.time import Duration, Time
from penstock.datastream.checks import need
from penstock.errors import ProgramError
from penstock.graph.operators import AsyncOperator
from penstock.runtime.async_functions import AsyncFunction, AsyncRetryStrategy


class AsyncFunctionDescriptor:
    """An asynchronous function and how it is called."""

    class OutputMode(enum.Enum):
        """In which order results go on."""

        ORDERED = 0
        UNORDERED = 1

    def __init__(
        self,
        async_function: AsyncFunction,
        timeout: Time,
        capacity: int,
        async_retry_strategy: AsyncRetryStrategy,
        output_mode: OutputMode,
    ) -> None:
        need(async_function, AsyncFunction, "AsyncDataStream")
        if not inspect.iscoroutinefunction(async_function.async_invoke):
            raise ProgramError(
                f"{type(async_function).__name__}.async_invoke is not a coroutine: write "
                "`async def`"
            )
        millis = _millis(timeout)
        if millis <= 0:
            raise ProgramError(
                f"the timeout of asynchronous calls must be positive, not {millis} ms"
            )
        if isinstance(capacity, bool) or not isinstance(capacity, int) or capacity < 1:
            raise ProgramError(f"the capacity must be a positive number of calls, not {capacity!r}")
        self.async_function = async_function
        self.timeout = timeout
        self.capacity = capacity
        self.async_retry_strategy = async_retry_strategy
        self.output_mode = output_mode

    def operator(self) -> AsyncOperator:
        """The operator of a program."""
        return AsyncOperator(
            self.async_function,
            "async_invoke",
            timeout_ms=_millis(self.timeout),
            capacity=self.capacity,
            ordered=self.output_mode is AsyncFunctionDescriptor.OutputMode.ORDERED,
            retry=self.async_retry_strategy,
        )


def _millis(timeout: Time | Duration) -> int:
    if isinstance(timeout, Duration):
        return timeout.to_millis()
    need(timeout, Time, "AsyncDataStream")
    return timeout.to_milliseconds()
