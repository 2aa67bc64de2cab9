"""The simulator: a whole job of many slots in one process, decided by one seed.

Slots, JobMaster, network, storage and clock are all driven from here. At every tick the seed picks
what happens next: a slot takes a turn, a message arrives, a slow operation finishes, time passes,
something breaks. Messages keep their order between two ends and have none otherwise. The code
under test is the code that runs on Spark; only its environment is simulated.

    simulation = Simulation(seed=7, job=job, rates=FaultRates(crash=0.001, budget=3))
    assert simulation.run() is JobStatus.FINISHED

The same seed and program give the same run, event by event: `simulation.trace` tells it.
"""

from __future__ import annotations

import random
from collections import deque
from collections.abc import Callable
from typing import Any

import cloudpickle

from penstock.common.job_status import JobStatus
from penstock.errors import PenstockError
from penstock.jobmanager.job import Job
from penstock.jobmanager.job_master import JobMaster
from penstock.network.frames import Frame, decode_frame, encode_frame
from penstock.runtime.slot_host import HostEnvironment, SlotHost, SlotIdentity
from penstock.testing.faults import FaultRates, FaultyFileSystem, SimulatedCrash

MAX_TICKS = 400_000


class SimulatedClock:
    """Time that passes when the simulation says so."""

    def __init__(self) -> None:
        self.now = 1_700_000_000_000

    def now_ms(self) -> int:
        return self.now

    def monotonic_ns(self) -> int:
        return self.now * 1_000_000


class SimulatedIo:
    """Slow work of one process, finished one piece at a time when the seed says so."""

    def __init__(self) -> None:
        self.queue: deque[tuple[Callable[[], Any], Callable[[Any, Exception | None], None]]]
        self.queue = deque()

    def submit(self, work: Callable[[], Any], done: Callable[[Any, Any], None]) -> None:
        self.queue.append((work, done))

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
        environment = HostEnvironment(
            simulation.clock, self.io, self.to_master.append, self.wake, self._open
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
        self.awake = self.host.turn()

    def heartbeat(self) -> None:
        interval = self.simulation.job.settings.heartbeat_interval_ms
        self.next_heartbeat = self.simulation.clock.now + interval
        self.to_master.append(self.host.heartbeat())


class Simulation:
    """One run of one job."""

    def __init__(
        self,
        seed: int,
        job: Job,
        rates: FaultRates | None = None,
        filesystem: FaultyFileSystem | None = None,
    ) -> None:
        self.rng = random.Random(seed)
        self.rates = rates or FaultRates()
        self.clock = SimulatedClock()
        self.io = SimulatedIo()
        self.job = job
        self.filesystem = filesystem
        self.processes: dict[tuple[int, int], SimulatedProcess] = {}
        self.network: dict[tuple[Any, Any], deque[list[bytes]]] = {}
        self.later: list[tuple[int, int, Callable[[], None]]] = []
        self.delivered: dict[str, list[Any]] = {}
        self.statuses: list[JobStatus] = []
        self.faults: list[str] = []
        self.trace: list[str] = []
        self.ticks = 0
        self._faults_left = self.rates.budget
        self._program = cloudpickle.dumps(job.graph)
        self.master = JobMaster(job, self)

    # --- the JobMaster's environment ----------------------------------------------------------

    def tell(self, launch: int, slot: int, message: Any) -> None:
        process = self.processes.get((launch, slot))
        if process is not None:
            process.from_master.append(message)

    def launch(self, launch: int) -> None:
        def start() -> None:
            for slot in range(self.job.graph.slots):
                process = SimulatedProcess(self, launch, slot, self._program)
                self.processes[launch, slot] = process

        self._at(self.rng.randrange(1, 200), start)

    def cancel_launch(self, launch: int, after_ms: int) -> None:
        self._at(after_ms + self.rng.randrange(0, 4000), lambda: self._end_launch(launch))

    def _end_launch(self, launch: int) -> None:
        for key in [key for key in self.processes if key[0] == launch]:
            if self.processes[key].frozen:
                # A frozen process is not reached by the kill; it may wake up as a zombie.
                self._at(self.rng.randrange(0, 30_000), lambda k=key: self._kill(k))  # type: ignore[misc]
            else:
                self._kill(key)
        self.master.launch_ended(launch, None)

    def new_keys(self) -> tuple[bytes, bytes]:
        return b"public", b"secret"

    def deliver(self, uid: str, subtask: int, values: list[Any]) -> None:
        self.delivered.setdefault(uid, []).extend(values)

    def client_keeps_up(self) -> bool:
        return self.rng.random() < 0.7

    def status_changed(self, status: JobStatus) -> None:
        self.statuses.append(status)

    # --- the network --------------------------------------------------------------------------

    def send_frame(self, sender: SimulatedProcess, receiver: tuple[int, int], frame: Frame) -> None:
        if self._faults_left > 0 and self.rng.random() < self.rates.lost_frame:
            self._fault(f"lost a frame {frame[:6]}")
            return
        pair = (sender.key, receiver)
        self.network.setdefault(pair, deque()).append(encode_frame(frame))

    # --- running ------------------------------------------------------------------------------

    def run(self) -> JobStatus:
        """Run until the job is over."""
        self.master.start()
        while not self.master.status.is_terminal_state():
            self.ticks += 1
            if self.ticks > MAX_TICKS:
                raise AssertionError(f"the job hangs: {self.describe()}")
            self._tick()
        return self.master.status

    def describe(self) -> str:
        master = self.master
        return f"{master.status}, waiting for {master._phase.value}, faults {self.faults}"

    def _tick(self) -> None:
        self._maybe_break()
        actions = self._possible()
        # Now and then time passes although something could be done: delays of every length.
        if not actions or self.rng.random() < 0.02:
            self._pass_time(bool(actions))
            return
        name, action, process = actions[self.rng.randrange(len(actions))]
        self.trace.append(name)
        self._act(action, process)

    def _act(self, action: Callable[[], None], process: SimulatedProcess | None) -> None:
        if self.filesystem is not None:
            self.filesystem.may_crash = process is not None
        try:
            action()
        except SimulatedCrash:
            assert process is not None
            self._fault(f"slot {process.key} died in the middle of a storage operation")
            self._crash(process)
        if process is not None and process.host.left:
            self._gone(process)

    def _possible(self) -> list[tuple[str, Callable[[], None], SimulatedProcess | None]]:
        actions: list[tuple[str, Callable[[], None], SimulatedProcess | None]] = []
        for key, process in self.processes.items():
            if process.to_master:
                actions.append((f"{key} to master", lambda p=process: self._to_master(p), None))  # type: ignore[misc]
            if process.frozen:
                continue
            if process.from_master:
                actions.append(
                    (f"master to {key}", lambda p=process: self._from_master(p), process)  # type: ignore[misc]
                )
            if process.io.queue:
                actions.append((f"{key} io", lambda p=process: self._process_io(p), process))  # type: ignore[misc]
            if process.awake:
                actions.append((f"{key} turn", process.turn, process))
        for pair, frames in self.network.items():
            if frames and pair[1] in self.processes:
                actions.append((f"frame {pair}", lambda p=pair: self._frame(p), None))  # type: ignore[misc]
        if self.io.queue:
            actions.append(("master io", self.io.run_one, None))
        return actions

    def _to_master(self, process: SimulatedProcess) -> None:
        message = process.to_master.popleft()
        self.master.handle(process.key[0], message)
        if self.rng.random() < 0.3:
            self.master.client_moved()

    def _from_master(self, process: SimulatedProcess) -> None:
        process.host.handle(process.from_master.popleft())
        process.awake = True

    def _process_io(self, process: SimulatedProcess) -> None:
        process.io.run_one()
        process.awake = True

    def _frame(self, pair: tuple[Any, Any]) -> None:
        process = self.processes[pair[1]]
        frame = decode_frame(self.network[pair].popleft())
        transport = process.transport
        if transport is not None and not transport.closed:
            transport.inbox.append(frame)
            process.awake = True

    # --- time ---------------------------------------------------------------------------------

    def _at(self, delay_ms: int, action: Callable[[], None]) -> None:
        self.later.append((self.clock.now + delay_ms, len(self.trace), action))

    def _pass_time(self, busy: bool) -> None:
        times = [time for time, _, _ in self.later]
        wakeup = self.master.next_wakeup_ms()
        if wakeup is not None:
            times.append(wakeup)
        for process in self.processes.values():
            if not process.frozen:
                times.append(process.next_heartbeat)
                wakeup = process.host.next_wakeup_ms()
                if wakeup is not None:
                    times.append(wakeup)
        target = max(self.clock.now + 1, min(times, default=self.clock.now + 1))
        # While something else could happen, time passes in small amounts only.
        self.clock.now = min(target, self.clock.now + self.rng.randrange(1, 20)) if busy else target
        self.trace.append(f"time {self.clock.now}")
        due = [entry for entry in self.later if entry[0] <= self.clock.now]
        self.later = [entry for entry in self.later if entry[0] > self.clock.now]
        for _, _, action in due:
            action()
        for process in self.processes.values():
            if not process.frozen:
                process.awake = True
                if process.next_heartbeat <= self.clock.now:
                    process.heartbeat()
        self.master.tick()
        self.master.client_moved()

    # --- faults -------------------------------------------------------------------------------

    def _maybe_break(self) -> None:
        if self._faults_left <= 0 or not self.processes:
            return
        chance = self.rng.random()
        if chance < self.rates.crash:
            process = self._any_process()
            self._fault(f"killed slot {process.key}")
            self._crash(process)
        elif chance < self.rates.crash + self.rates.freeze:
            process = self._any_process()
            if not process.frozen:
                self._fault(f"froze slot {process.key}")
                process.frozen = True
                self._at(self.rng.randrange(1, 40_000), lambda: self._thaw(process))

    def _any_process(self) -> SimulatedProcess:
        return self.processes[self.rng.choice(sorted(self.processes))]

    def _thaw(self, process: SimulatedProcess) -> None:
        process.frozen = False
        process.awake = True

    def _fault(self, what: str) -> None:
        self._faults_left -= 1
        self.faults.append(f"tick {self.ticks}: {what}")

    def _crash(self, process: SimulatedProcess) -> None:
        """The process dies; what it had sent may or may not arrive."""
        launch = process.key[0]
        self._kill(process.key)
        if self.rng.random() < 0.9:
            # The cluster notices, at once or after a while; the siblings live on until told.
            delay = self.rng.randrange(0, 2000)
            self._at(delay, lambda: self.master.launch_ended(launch, PenstockError("killed")))
        self._at(self.rng.randrange(2000, 6000), lambda: self._end_launch(launch))

    def _kill(self, key: tuple[int, int]) -> None:
        process = self.processes.pop(key, None)
        if process is None:
            return
        for pair, frames in self.network.items():
            if pair[0] == key:
                for _ in range(self.rng.randrange(len(frames) + 1)):
                    frames.pop()

    def _gone(self, process: SimulatedProcess) -> None:
        """A process that was told to leave has left."""
        launch = process.key[0]
        while process.to_master:
            self.master.handle(launch, process.to_master.popleft())
        self.processes.pop(process.key, None)
        if not any(key[0] == launch for key in self.processes):
            self._at(self.rng.randrange(0, 50), lambda: self.master.launch_ended(launch, None))
