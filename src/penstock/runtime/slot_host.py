"""The slot host: a slot's process over its whole life, across attempts.

It registers, opens a transport when told to, runs a `Slot` per attempt, and between two attempts
makes sure that nothing of the old one is alive before it says so.
"""

from __future__ import annotations

import logging
import pickle
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Protocol

from penstock.checkpoint.store import is_damage
from penstock.common.clock import Clock
from penstock.errors import ChannelBrokenError, ProgramError
from penstock.graph.execution_graph import ExecutionGraph
from penstock.network.messages import (
    Damaged,
    Deploy,
    EndAttempt,
    Failed,
    Go,
    Heartbeat,
    Leave,
    Prepare,
    Prepared,
    Register,
    Restored,
    Running,
    Stopped,
)
from penstock.runtime.environment import RAISED, IoExecutor, SlotEnvironment, Transport
from penstock.runtime.failure import explain
from penstock.runtime.slot import Slot
from penstock.runtime.startup import Startup
from penstock.runtime.step_watch import StepWatch

log = logging.getLogger(__name__)


class HostTransport(Transport, Protocol):
    """A transport that the host opens, connects and closes."""

    address: str

    def connect(self, peers: dict[int, str]) -> None: ...

    def strangers(self) -> int:
        """How many connections were refused because they had no key."""
        ...

    def close(self) -> None: ...


class WaitingTransport(HostTransport, Protocol):
    """A transport whose owner sleeps in it."""

    def wait(self, timeout_ms: int | None) -> None: ...


@dataclass(frozen=True)
class HostEnvironment:
    """What a slot's process is given."""

    clock: Clock
    io: IoExecutor
    tell: Callable[[Any], None]
    wake: Callable[[], None]
    open_transport: Callable[[bytes, bytes], HostTransport]
    calls: Any = None
    watch: StepWatch = field(default_factory=StepWatch)
    load: Callable[[bytes], ExecutionGraph] = pickle.loads
    """Makes the program from its bytes."""
    raised: tuple[type[BaseException], ...] = RAISED


@dataclass(frozen=True)
class SlotIdentity:
    """Which slot of which job this is."""

    job_id: str
    launch: int
    slot: int
    host: str
    pid: int


class SlotHost:
    """Runs one slot, attempt after attempt."""

    def __init__(
        self, identity: SlotIdentity, program: bytes, environment: HostEnvironment
    ) -> None:
        self._identity = identity
        self._program = program
        self._environment = environment
        self._transport: HostTransport | None = None
        self._attempt = 0
        self._stopping = False
        self._startup: Startup | None = None
        self._former: Slot | None = None
        self.slot: Slot | None = None
        self.left = False
        """Told to go: the process ends."""

    def register(self) -> None:
        identity = self._identity
        self._environment.tell(
            Register(identity.launch, identity.slot, identity.host, identity.pid)
        )

    def handle(self, message: Any) -> None:
        """Act on a message of the JobMaster."""
        if isinstance(message, Leave):
            self._close_slot()
            self._close_transport()
            self.left = True
        elif isinstance(message, Prepare):
            self._prepare(message)
        elif message.attempt != self._attempt:
            return
        elif isinstance(message, Deploy):
            self._deploy(message)
        elif isinstance(message, Go):
            self._go()
        elif isinstance(message, EndAttempt):
            self._end_attempt()
        elif self.slot is not None and not self._stopping:
            self.slot.handle(message)

    def _prepare(self, message: Prepare) -> None:
        self._attempt = message.attempt
        self._stopping = False
        self._transport = self._environment.open_transport(message.public_key, message.secret_key)
        prepared = Prepared(self._attempt, self._identity.slot, self._transport.address)
        self._environment.tell(prepared)

    def _deploy(self, message: Deploy) -> None:
        environment, identity, transport = self._environment, self._identity, self._transport
        assert transport is not None
        try:
            transport.connect(dict(message.peers))
            # Unpickled anew for every attempt: functions must not remember the last one.
            graph = unpickled(self._program, environment.load)
            inside = SlotEnvironment(
                environment.clock,
                transport,
                environment.io,
                environment.tell,
                environment.wake,
                environment.calls,
                environment.watch,
                environment.raised,
            )
            startup = self._startup = Startup(message.restored.values(), self._beat)
            self._forget(startup)
            self.slot = Slot(graph, identity.job_id, identity.slot, message, inside, startup)
        except environment.raised as error:
            self._not_restored(error)
            return
        startup.waits()
        environment.tell(Restored(self._attempt, identity.slot))

    def _forget(self, startup: Startup) -> None:
        """Let go of the state of the attempt before: there may not be room for both."""
        former, self._former = self._former, None
        if former is not None:
            startup.lets_go()
            former.forget()

    def _not_restored(self, error: BaseException) -> None:
        startup, self._startup = self._startup, None
        identity, tell = self._identity, self._environment.tell
        failure = explain(error, None, identity.slot, 1, False)
        if startup is not None and startup.path and is_damage(error):
            tell(Damaged(self._attempt, identity.slot, startup.path, failure))
        else:
            tell(Failed(self._attempt, identity.slot, failure))

    def _go(self) -> None:
        assert self.slot is not None, "only a slot that has restored its state is told to run"
        identity, tell = self._identity, self._environment.tell
        try:
            self.slot.open()
        except self._environment.raised as error:
            self.slot = None
            failure = explain(error, None, identity.slot, 1, False)
            tell(Failed(self._attempt, identity.slot, failure))
            return
        finally:
            self._startup = None
        tell(Running(self._attempt, identity.slot))

    def _end_attempt(self) -> None:
        self._stopping = True
        self._close_slot()
        attempt = self._attempt

        def drained(_: None, error: Exception | None) -> None:
            self._close_transport()
            self._former, self.slot = self.slot, None
            self._environment.tell(Stopped(attempt, self._identity.slot))

        # Work off the loop is done in order: when this is done, all of the attempt's is.
        self._environment.io.submit(lambda: None, drained)

    def _close_slot(self) -> None:
        if self.slot is not None:
            for error in self.slot.close():
                log.warning("slot %d: closing failed: %s", self._identity.slot, error)

    def _close_transport(self) -> None:
        if self._transport is not None:
            self._transport.close()
            self._transport = None

    def turn(self) -> bool:
        """One turn of the loop; False when it may sleep."""
        if not self._runs or self.left:
            return False
        return self._slot.turn()

    def next_wakeup_ms(self) -> int | None:
        return self._slot.next_wakeup_ms() if self._runs else None

    @property
    def _runs(self) -> bool:
        return self.slot is not None and self.slot.is_open and not self._stopping

    @property
    def _slot(self) -> Slot:
        assert self.slot is not None
        return self.slot

    def wait(self, transport: WaitingTransport, timeout_ms: int) -> None:
        """Sleep in the transport; a connection that breaks meanwhile fails the attempt."""
        try:
            transport.wait(timeout_ms)
        except ChannelBrokenError as error:
            if self.slot is not None and not self._stopping:
                self.slot.fail(error)

    def _beat(self) -> None:
        self._environment.tell(self.heartbeat())

    def heartbeat(self) -> Heartbeat:
        slot, transport, startup = self.slot, self._transport, self._startup
        if slot is None or not slot.is_open or self._stopping:
            starting = startup.seen() if startup is not None else None
            return Heartbeat(self._attempt, self._identity.slot, starting=starting)
        return slot.heartbeat(transport.strangers() if transport is not None else 0)


def unpickled(
    program: bytes, load: Callable[[bytes], ExecutionGraph] = pickle.loads
) -> ExecutionGraph:
    """The program; ProgramError if it needs a module that is not here."""
    try:
        return load(program)
    except ModuleNotFoundError as error:
        raise ProgramError(
            f"the program needs the module {error.name!r}, which slots cannot import: send it with "
            "env.add_python_file() or env.set_python_requirements(), or install it where slots run"
        ) from error
