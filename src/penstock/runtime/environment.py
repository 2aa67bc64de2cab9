"""What a slot is given to live in: a clock, a transport, a way to speak, a way to do slow things.

Real slots get the system's; a simulated slot gets ones that a seed controls.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Protocol, TypeVar

from penstock.common.clock import Clock
from penstock.network.frames import Frame
from penstock.runtime.step_watch import StepWatch

T = TypeVar("T")

RAISED: tuple[type[BaseException], ...] = (
    Exception,
    SystemExit,
    GeneratorExit,
    asyncio.CancelledError,
)
"""What counts as raised by a user's function. Where a slot has a process of its own,
KeyboardInterrupt does too; in a test it comes from the person who runs the test."""


class Transport(Protocol):
    """Carries frames between slots, in order per pair of slots."""

    def send(self, slot: int, frame: Frame) -> None:
        """Never blocks: credits bound what is under way."""
        ...

    def receive(self) -> list[Frame]:
        """What has arrived; never blocks."""
        ...


class IoExecutor(Protocol):
    """Runs slow work one after another, off the loop."""

    def submit(
        self, work: Callable[[], T], done: Callable[[T | None, Exception | None], None]
    ) -> None:
        """Call `done` on the loop with the result or the exception of `work`."""
        ...


@dataclass(frozen=True)
class SlotEnvironment:
    """Everything outside a slot that it may touch."""

    clock: Clock
    transport: Transport
    io: IoExecutor
    tell: Callable[[Any], None]
    """Sends a message to the JobMaster."""
    wake: Callable[[], None]
    """Wakes the loop from another thread."""
    calls: Any = None
    """Awaits asynchronous calls (a CallExecutor); None: they are done as other slow work is."""
    watch: StepWatch = field(default_factory=StepWatch)
    """Ends steps that take too long."""
    raised: tuple[type[BaseException], ...] = RAISED
    """What fails the attempt when it comes out of a user's function."""
