"""Functions that take simulated time.

    def ask_database(record):
        spend(50 if record > 100_000 else 0)    # it has stalled
        return record

What a record takes passes on the clock of the simulation. The thread that ends long steps of a real
slot is there too: it looks as often as it would. Outside of a simulated slot no time passes.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING

from penstock.runtime.step_watch import LOOK_MS, StepWatch

if TYPE_CHECKING:
    from penstock.testing.simulated import SimulatedClock

_running: ContextVar[tuple[SimulatedClock, StepWatch] | None]
_running = ContextVar("running", default=None)


@contextmanager
def takes_its_turn(clock: SimulatedClock, watch: StepWatch) -> Iterator[None]:
    """What is spent inside is spent by a slot with this clock and this watch."""
    token = _running.set((clock, watch))
    try:
        yield
    finally:
        _running.reset(token)


def spend(ms: int) -> None:
    """Let the record at hand take so long."""
    running = _running.get()
    if running is not None:
        clock, watch = running
        before = clock.now
        clock.now += ms
        for _ in range(clock.now // LOOK_MS - before // LOOK_MS):
            watch.look()
