"""Asynchronous calls of a simulated slot: an event loop whose time is that of the simulation.

A call that sleeps for a second takes no real time, and one that never answers runs into its timeout
all the same. The simulation says when the loop turns, so a seed decides which calls end first. The
loop knows nothing of sockets: functions that are called here may sleep and compute, no more.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

from penstock.common.clock import Clock

_RESOLUTION = 1e-9
"""As fine as event loops count, in seconds."""


class SimulatedCalls:
    """The calls of one process."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._began_ms = clock.monotonic_ms()
        self._loop: _TurnedLoop | None = None

    def submit(
        self, call: Callable[[], Awaitable[Any]], done: Callable[[Any, Any], None]
    ) -> Callable[[], None]:
        """Await `call()` in the turns to come, then call `done(result, error)`."""

        async def run() -> None:
            try:
                result = await call()
            except Exception as error:
                done(None, error)
            else:
                done(result, None)

        if self._loop is None:
            self._loop = _TurnedLoop(self._seconds)
        task = self._loop.create_task(run())

        def cancel() -> None:
            task.cancel()

        return cancel

    def _seconds(self) -> float:
        # Counted from the beginning: the digits of the whole number would not do for microseconds.
        return (self._clock.monotonic_ms() - self._began_ms) / 1000

    def ready(self) -> bool:
        """Whether a turn has something to do."""
        return self._loop is not None and (self._loop.woken or self.next_ms() == 0)

    def next_ms(self) -> int | None:
        """In how many milliseconds something is due by the clock."""
        due = self._loop.next_due() if self._loop is not None else None
        return None if due is None else max(0, round((due - self._seconds()) * 1000))

    def turn(self) -> None:
        """Let every call go on that can, up to where it waits again."""
        if self._loop is not None:
            self._loop.turn()

    def kill(self) -> None:
        """The process is no more, and its calls are nobody's."""
        if self._loop is not None:
            self._loop.end()
            self._loop = None


class _TurnedLoop(asyncio.BaseEventLoop):
    """An event loop that goes round once when it is told to, and never waits."""

    def __init__(self, seconds: Callable[[], float]) -> None:
        super().__init__()
        self._seconds = seconds
        self._timers: list[asyncio.TimerHandle] = []
        self._selector = self
        self.woken = False

    def time(self) -> float:
        return self._seconds()

    def turn(self) -> None:
        self.woken = False
        known = len(self._timers)
        left = [timer for timer in self._timers if timer.when() > self.time() + _RESOLUTION]
        # A loop that is told to stop before it runs goes round once.
        self.stop()
        self.run_forever()
        self._timers = left + self._timers[known:]

    def end(self) -> None:
        """Cancel what is under way: what was never awaited would be complained about."""
        while tasks := asyncio.all_tasks(self):
            for task in tasks:
                task.cancel()
            self.turn()
        self.close()

    def next_due(self) -> float | None:
        """When the next callback is due by the time of the loop."""
        return min((t.when() for t in self._timers if not t.cancelled()), default=None)

    def call_soon(self, *call: Any, **how: Any) -> asyncio.Handle:  # type: ignore[override]
        self.woken = True
        return super().call_soon(*call, **how)

    def call_at(self, *call: Any, **how: Any) -> asyncio.TimerHandle:  # type: ignore[override]
        timer = super().call_at(*call, **how)
        self._timers.append(timer)
        return timer

    # --- what a loop with sockets would do ------------------------------------------------------

    def select(self, timeout: float | None) -> list[Any]:
        return []

    def _process_events(self, events: list[Any]) -> None:
        """There are none."""
