"""The operator of asynchronous calls: starts them, bounds them, keeps what waits in checkpoints.

What is under way at a barrier is part of the checkpoint, record by record, and is called again
after a restore: a call may happen more than once, its result counts once.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any, Protocol

from penstock.common.clock import Clock
from penstock.common.typeinfo import Types
from penstock.errors import ResultShapeError
from penstock.graph.operators import AsyncOperator
from penstock.graph.stream_graph import StreamNode
from penstock.runtime.async_queue import AsyncQueue, Call
from penstock.runtime.context import SubtaskInfo
from penstock.runtime.environment import IoExecutor
from penstock.runtime.operator_cut import OperatorCut
from penstock.runtime.operators import RuntimeFunction
from penstock.state.descriptors import ListStateDescriptor


class CallExecutor(Protocol):
    """Awaits calls off the loop."""

    def submit(
        self, call: Callable[[], Awaitable[Any]], done: Callable[[Any, Any], None]
    ) -> Callable[[], None]:
        """Call `done(result, error)` on the loop when the call has ended; returns a cancel."""
        ...


class IoCalls:
    """Calls one after another, as other slow work: for slots that run in one thread."""

    def __init__(self, io: IoExecutor) -> None:
        self._io = io

    def submit(
        self, call: Callable[[], Awaitable[Any]], done: Callable[[Any, Any], None]
    ) -> Callable[[], None]:
        cancelled = False

        def cancel() -> None:
            nonlocal cancelled
            cancelled = True

        def ended(result: Any, error: Any) -> None:
            if not cancelled:
                done(result, error)

        self._io.submit(lambda: asyncio.run(_awaited(call)), ended)
        return cancel


async def _awaited(call: Callable[[], Awaitable[Any]]) -> Any:
    return await call()


class CallFailed:
    """In place of results: the call raised."""

    def __init__(self, error: BaseException) -> None:
        self.error = error


def raise_failed(failed: CallFailed) -> None:
    """Raise what the call raised, where the record is known."""
    raise failed.error


class RuntimeAsync(RuntimeFunction):
    """Asynchronous calls of one subtask."""

    def __init__(
        self, node: StreamNode, info: SubtaskInfo, clock: Clock, calls: CallExecutor
    ) -> None:
        super().__init__(node, info, clock)
        assert isinstance(node.operator, AsyncOperator)
        self._spec: AsyncOperator = node.operator
        self._calls = calls
        self.queue = AsyncQueue(self._spec.ordered)
        self._cancels: dict[Call, Callable[[], None]] = {}
        self.restored: list[tuple[Any, int | None]] = []
        """Records that were under way at the checkpoint: they are called again first."""

    def full(self) -> bool:
        """Whether no further call may begin."""
        return self.queue.size >= self._spec.capacity

    def start(self, value: Any, timestamp: int | None) -> None:
        """Call for `value`."""
        call = self.queue.add(value, timestamp)

        def done(result: Any, error: BaseException | None) -> None:
            self._cancels.pop(call, None)
            if error is not None:
                call.end(CallFailed(error))
            else:
                call.end(result if isinstance(result, CallFailed) else _checked(result))

        self._cancels[call] = self._calls.submit(lambda: self._ask(value), done)

    async def _ask(self, value: Any) -> Any:
        function: Any = self._spec.function
        try:
            return await asyncio.wait_for(self._tries(value), self._spec.timeout_ms / 1000)
        except asyncio.TimeoutError:
            return _checked(function.timeout(value), "timeout()")

    async def _tries(self, value: Any) -> Any:
        function, retry = self._spec.function, self._spec.retry
        attempt = 1
        while True:
            try:
                result = await function.async_invoke(value)
            except (SystemExit, KeyboardInterrupt, GeneratorExit) as error:
                # Returned, because raised it would end the event loop and all calls in it.
                return CallFailed(error)
            except Exception as error:
                worth = retry.get_retry_predicate().exception_predicate()
                if worth is None or not retry.can_retry(attempt) or not worth(error):
                    raise
            else:
                worth = retry.get_retry_predicate().result_predicate()
                if worth is None or not retry.can_retry(attempt) or not worth(result):
                    return result
            await asyncio.sleep(retry.get_backoff_time_millis(attempt) / 1000)
            attempt += 1

    def open(self) -> None:
        waiting = ListStateDescriptor("__waiting", Types.PICKLED_BYTE_ARRAY())
        self._waiting = self.own.backend.get_list_state(waiting)
        self.restored = list(self._waiting.get() or ())
        super().open()

    def cut(self, checkpoint: int) -> OperatorCut:
        self._waiting.update(list(self.queue.waiting()))
        return super().cut(checkpoint)

    def close(self) -> None:
        for cancel in self._cancels.values():
            cancel()
        self._cancels.clear()
        super().close()


def _checked(result: Any, called: str = "async_invoke()") -> Any:
    if isinstance(result, list | tuple | CallFailed):
        return result
    return CallFailed(
        ResultShapeError(
            f"{called} returned a {type(result).__name__} where a list is expected; wrap "
            "it in a list to emit it as one record"
        )
    )
