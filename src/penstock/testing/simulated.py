"""The surroundings of a simulated slot: its clock, its slow work, its end of the network."""

from __future__ import annotations

import random
from collections import deque
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

from penstock.network.frames import Frame
from penstock.runtime.slot_host import HostEnvironment, SlotHost, SlotIdentity
from penstock.runtime.step_watch import StepWatch
from penstock.testing.simulated_calls import SimulatedCalls
from penstock.testing.speed import takes_its_turn

if TYPE_CHECKING:
    from penstock.testing.simulator import Simulation


class SimulatedClock:
    """Time that passes when the simulation says so."""

    def __init__(self, rng: random.Random) -> None:
        self.now = 1_700_000_000_000
        self._rng = rng
        self._elapsed = 0
        self.set_back_ms = 0
        """By how much somebody has set the clock of the machine back."""

    def now_ms(self) -> int:
        return self.now - self.set_back_ms

    def monotonic_ns(self) -> int:
        # Work takes time, so that steps are cut by the clock too, at any point.
        self._elapsed += self._rng.randrange(600_000)
        return self.now * 1_000_000 + self._elapsed

    def monotonic_ms(self) -> int:
        return self.now


class SimulatedIo:
    """Slow work of one process, finished one piece at a time when the seed says so."""

    def __init__(self) -> None:
        self.queue: deque[tuple[Callable[[], Any], Callable[[Any, Exception | None], None]]]
        self.queue = deque()

    def submit(self, work: Callable[[], Any], done: Callable[[Any, Any], None]) -> None:
        self.queue.append((work, done))

    def each(self, work: Callable[[Any], Any], items: Iterable[Any]) -> list[Any]:
        return list(map(work, items))

    def run_one(self) -> None:
        work, done = self.queue.popleft()
        try:
            result = work()
        except Exception as error:
            done(None, error)
        else:
            done(result, None)


class SimulatedTransport:
    """A slot's end of the network: frames are encoded, queued per pair, and arrive in order."""

    def __init__(self, process: SimulatedProcess) -> None:
        self._process = process
        self.address = f"{process.key}"
        self.inbox: deque[Frame] = deque()
        self.closed = False
        self.peers: dict[int, tuple[int, int]] = {}

    def connect(self, peers: dict[int, str]) -> None:
        for slot in peers:
            self.peers[slot] = (self._process.key[0], slot)

    def send(self, slot: int, frame: Frame) -> None:
        self._process.simulation.send_frame(self._process, self.peers[slot], frame)

    def receive(self) -> list[Frame]:
        frames = list(self.inbox)
        self.inbox.clear()
        return frames

    def strangers(self) -> int:
        return 0

    def close(self) -> None:
        self.closed = True
        self.inbox.clear()


class SimulatedProcess:
    """A slot's process."""

    def __init__(self, simulation: Simulation, launch: int, slot: int, program: bytes) -> None:
        self.simulation = simulation
        self.key = (launch, slot)
        self.io = SimulatedIo()
        self.to_master: deque[Any] = deque()
        self.from_master: deque[Any] = deque()
        self.frozen = False
        self.awake = True
        self.next_heartbeat = simulation.clock.now
        self.transport: SimulatedTransport | None = None
        self.calls = SimulatedCalls(simulation.clock) if simulation.simulates_calls else None
        self._watch = StepWatch()
        environment = HostEnvironment(
            simulation.clock,
            self.io,
            self.to_master.append,
            self.wake,
            self._open,
            self.calls,
            self._watch,
        )
        identity = SlotIdentity(simulation.job.id, launch, slot, "sim", slot)
        self.host = SlotHost(identity, program, environment)
        self.host.register()

    def wake(self) -> None:
        self.awake = True

    def _open(self, public_key: bytes, secret_key: bytes) -> SimulatedTransport:
        self.transport = SimulatedTransport(self)
        return self.transport

    def turn(self) -> None:
        with takes_its_turn(self.simulation.clock, self._watch):
            self.awake = self.host.turn()

    def turn_calls(self) -> None:
        """Asynchronous calls go on."""
        assert self.calls is not None
        self.calls.turn()
        self.awake = True

    def ended(self) -> None:
        """The process is no more."""
        if self.calls is not None:
            self.calls.kill()

    def heartbeat(self) -> None:
        interval = self.simulation.job.settings.heartbeat_interval_ms
        self.next_heartbeat = self.simulation.clock.now + interval
        self.to_master.append(self.host.heartbeat())
