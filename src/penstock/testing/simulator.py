"""The simulator: a whole job of many slots in one process, decided by one seed.

Slots, JobMaster, network, storage and clock are all driven from here. At every tick the seed picks
what happens next: a slot takes a turn, a message arrives, a slow operation finishes, time passes,
something breaks. Messages keep their order between two ends and have none otherwise. The code
under test is the code that runs on Spark; only its environment is simulated.

    simulation = Simulation(seed=7, job=job, rates=FaultRates(crash=0.001, budget=3))
    assert simulation.run() is JobStatus.FINISHED

The same seed and program give the same run, event by event: `simulation.trace` tells it. To see
one seed of the suite again, with its program, its faults and what came of it:

    python -m penstock.testing 4711
"""

from __future__ import annotations

import hashlib
from collections import deque
from collections.abc import Callable, Iterable
from typing import Any

from penstock.common.job_status import JobStatus
from penstock.errors import NotEnoughSlotsError, PenstockError
from penstock.graph.pickling import pickle_graph
from penstock.jobmanager.job import Job
from penstock.jobmanager.job_master import JobMaster
from penstock.jobmanager.results import Deliver
from penstock.network.frames import Frame, decode_frame, encode_frame
from penstock.network.messages import Complete, Deploy
from penstock.testing.choices import Choices
from penstock.testing.faults import FaultBudget, FaultRates, FaultyFileSystem, SimulatedCrash
from penstock.testing.mishaps import MASTER, Mishaps
from penstock.testing.simulated import SimulatedClock, SimulatedProcess
from penstock.testing.stepped_io import SteppedIo

MAX_TICKS = 600_000


class Simulation:
    """One run of one job."""

    def __init__(
        self,
        seed: int | str,
        job: Job,
        rates: FaultRates | None = None,
        filesystem: FaultyFileSystem | None = None,
        listener: Deliver | None = None,
    ) -> None:
        choices = Choices(seed)
        self.rng = choices("schedule")
        self.rates = rates or FaultRates()
        self.clock = SimulatedClock(choices("speed"))
        self.io = SteppedIo(filesystem, choices("steps of the driver"))
        self.job = job
        self.filesystem = filesystem
        self.budget = filesystem.budget if filesystem else FaultBudget(self.rates.budget)
        self.pace = choices("pace").choice((0.03, 0.1, 0.25))
        """How often time passes although something could be done."""
        self.processes: dict[tuple[int, int], SimulatedProcess] = {}
        self.network: dict[tuple[Any, Any], deque[list[bytes]]] = {}
        self.later: list[tuple[int, int, Callable[[], object]]] = []
        self.delivered: dict[str, dict[int, list[Any]]] = {}
        """What the client got, by uid of the sink and subtask, unless there is a listener."""
        self._listener = listener
        self.statuses: list[JobStatus] = []
        self.restored: set[int] = set()
        """The attempts that began at a checkpoint."""
        self.restored_in_flight: set[int] = set()
        """Those of them that found records under way in it."""
        self.trace: list[str] = []
        self.ticks = 0
        self.cores: int | None = None
        """How many slots the cluster has room for; None: for any number."""
        self.simulates_calls = False
        """Whether asynchronous calls of slots take simulated time, and may do nothing but wait."""
        self.later_cores: int | None = None
        """How many it has from the next launch on."""
        self._letters: dict[tuple[int, int], deque[Any]] = {}
        self.stalled: dict[tuple[str, Any], int] = {}
        """Until when what does not happen, by its kind and whose it is."""
        self._mishaps = Mishaps(self, choices("mishaps"))
        self._program = (job.graph, pickle_graph(job.graph))
        self.master = JobMaster(job, self)
        if filesystem is not None:
            filesystem.armed = True
            filesystem.later = lambda act: self.at(self.rng.randrange(1, 3000), act)

    # --- the JobMaster's environment ----------------------------------------------------------

    def aside(self, work: Callable[[], Any], done: Callable[[Any, Any], None]) -> None:
        self.io.submit(work, done)

    def listened_ms(self) -> int:
        return self.clock.monotonic_ms()

    def tell(self, launch: int, slot: int, message: Any) -> None:
        process = self.processes.get((launch, slot))
        if process is not None:
            process.from_master.append(message)
        if isinstance(message, Deploy) and message.restored:
            self.restored.add(message.attempt)
            if any(snapshot.in_flight for snapshot in message.restored.values()):
                self.restored_in_flight.add(message.attempt)
        if isinstance(message, Complete) and self.rng.random() < self.rates.crash_soon:
            self._mishaps.crash_tick = self.ticks + self.rng.randrange(1, 150)

    def launch(self, launch: int, job: Job) -> None:
        if self._program[0] is not job.graph:
            self._program = (job.graph, pickle_graph(job.graph))
        program = self._program[1]
        if self.later_cores is not None:
            self.cores, self.later_cores = self.later_cores, None

        def start() -> None:
            if self.cores is not None and job.graph.slots > self.cores:
                self.master.launch_ended(launch, NotEnoughSlotsError("simulated: no core is free"))
                return
            for slot in range(job.graph.slots):
                process = SimulatedProcess(self, launch, slot, program)
                self.processes[launch, slot] = process

        self.at(self.rng.randrange(1, 200), start)

    def cancel_launch(self, launch: int, after_ms: int) -> None:
        self.at(after_ms + self.rng.randrange(0, 4000), lambda: self._end_launch(launch))

    def _end_launch(self, launch: int) -> None:
        for key in [key for key in self.processes if key[0] == launch]:
            if self.processes[key].frozen:
                # A frozen process is not reached by the kill; it may wake up as a zombie.
                self.at(self.rng.randrange(0, 30_000), lambda k=key: self._kill(k))  # type: ignore[misc]
            else:
                self._kill(key)
        self.master.launch_ended(launch, None)

    def prepare_launch(self, job: Job, held: int, done: Callable[[Exception | None], None]) -> None:
        enough = self.cores is None or job.graph.slots <= self.cores
        refused = None if enough else NotEnoughSlotsError("simulated: too few cores")
        self.at(self.rng.randrange(0, 50), lambda: done(refused))

    def new_keys(self) -> tuple[bytes, bytes]:
        return b"public", b"secret"

    def deliver(self, uid: str, subtask: int, values: Iterable[Any]) -> None:
        if self._listener is not None:
            self._listener(uid, subtask, values)
        else:
            self.delivered.setdefault(uid, {}).setdefault(subtask, []).extend(values)

    def client_keeps_up(self) -> bool:
        return self.rng.random() < 0.7

    def chance(self) -> float:
        return self.rng.random()

    def status_changed(self, status: JobStatus) -> None:
        self.statuses.append(status)

    # --- the network --------------------------------------------------------------------------

    def send_frame(self, sender: SimulatedProcess, receiver: tuple[int, int], frame: Frame) -> None:
        if self.budget.left > 0 and self.rng.random() < self.rates.lost_frame:
            self.fault(f"lost a frame {frame[:6]}")
            return
        pair = (sender.key, receiver)
        if pair not in self.network:
            self.network[pair] = deque()
        self.network[pair].append(encode_frame(frame))

    # --- running ------------------------------------------------------------------------------

    def run(self, cancel_at: int | None = None) -> JobStatus:
        """Run until the job is over; a user cancels it at tick `cancel_at`."""
        self.master.start()
        while not self.over:
            if self.ticks >= MAX_TICKS:
                raise AssertionError(f"the job hangs: {self.describe()}")
            if self.ticks + 1 == cancel_at:
                self.master.cancel()
            self.tick()
        return self.master.status

    def end(self) -> None:
        """Nobody looks at this run any more: what its driver was about to do is not done."""
        self.io.kill()
        for process in self.processes.values():
            process.ended()

    @property
    def over(self) -> bool:
        """Whether nothing will happen any more."""
        return self.master.status.is_terminal_state()

    def describe(self) -> str:
        master = self.master
        return (
            f"{master.status}, waiting for {master._phase.value}, after {master.error}, "
            f"{master.progress()}, faults {self.faults}"
        )

    @property
    def faults(self) -> list[str]:
        """What went wrong, in order."""
        return self.budget.log

    def digest(self) -> str:
        """A name for the whole run: equal when every event was."""
        return hashlib.sha256("\n".join(self.trace).encode()).hexdigest()

    def tick(self) -> None:
        """Let one thing happen. Between ticks the job may be looked at and cancelled."""
        self.ticks += 1
        self._mishaps.happen()
        actions = self._possible()
        # Now and then time passes although something could be done: delays of every length.
        if not actions or self.rng.random() < self.pace:
            self._pass_time(bool(actions))
            return
        kind, target = actions[self.rng.randrange(len(actions))]
        self.trace.append(f"{kind} {target}")
        self._act(kind, target)

    def _act(self, kind: str, target: Any) -> None:
        # The driver is replaced as a whole; in the middle of an operation only slots die.
        dies = kind in ("turn", "down", "storage") and target != MASTER
        process = self.processes[target] if dies else None
        if self.filesystem is not None:
            self.filesystem.may_crash = process is not None
        try:
            _ACTIONS[kind](self, target)
        except SimulatedCrash:
            assert process is not None
            self.crash(process)
            return
        if process is not None:
            if kind == "turn":
                self._check_credits(process)
            if process.host.left:
                self._gone(process)

    def _check_credits(self, process: SimulatedProcess) -> None:
        """Memory is bounded by credits: no queue is ever longer than its channel's."""
        slot = process.host.slot
        if slot is None:
            return
        most = self.job.settings.credits
        for channel, (_, receiver) in slot._built.receivers.items():
            if len(receiver.queue) > most:
                batches = sum(element.__class__ is list for element in receiver.queue)
                assert batches <= most, f"{channel} holds {batches} buffers, its credits are {most}"

    def _possible(self) -> list[tuple[str, Any]]:
        """What could happen next: its kind, and whose it is. Asked for at every tick."""
        actions: list[tuple[str, Any]] = []
        for key, process in self.processes.items():
            if process.to_master:
                actions.append(("up", key))
            if process.frozen:
                continue
            if process.from_master:
                actions.append(("down", key))
            if process.io.queue:
                actions.append(("storage", key))
            if process.awake:
                actions.append(("turn", key))
            if process.calls is not None and process.calls.ready():
                actions.append(("calls", key))
        actions.extend(
            ("frame", pair)
            for pair, frames in self.network.items()
            if frames and pair[1] in self.processes
        )
        actions.extend(("letter", key) for key in self._letters)
        if self.io.queue:
            actions.append(("storage", MASTER))
        if self.stalled:
            now = self.clock.now
            actions = [way for way in actions if self.stalled.get(way, 0) <= now]
        return actions

    def _turn(self, key: tuple[int, int]) -> None:
        self.processes[key].turn()

    def _calls(self, key: tuple[int, int]) -> None:
        self.processes[key].turn_calls()

    def _up(self, key: tuple[int, int]) -> None:
        message = self.processes[key].to_master.popleft()
        self.trace.append(type(message).__name__)
        self.master.handle(key[0], message)
        if self.rng.random() < 0.3:
            self.master.client_moved()

    def _down(self, key: tuple[int, int]) -> None:
        process = self.processes[key]
        process.host.handle(process.from_master.popleft())
        process.awake = True

    def _storage(self, key: tuple[int, int]) -> None:
        if key == MASTER:
            self.io.step()
            return
        process = self.processes[key]
        process.io.run_one()
        process.awake = True

    def _frame(self, pair: tuple[Any, Any]) -> None:
        process = self.processes[pair[1]]
        frame = decode_frame(self.network[pair].popleft())
        transport = process.transport
        if transport is not None and not transport.closed:
            transport.inbox.append(frame)
            process.awake = True

    def _letter(self, key: tuple[int, int]) -> None:
        """Something that a process sent before it died arrives."""
        self.master.handle(key[0], self._letters[key].popleft())
        if not self._letters[key]:
            del self._letters[key]

    # --- time ---------------------------------------------------------------------------------

    def at(self, delay_ms: int, action: Callable[[], object]) -> None:
        self.later.append((self.clock.now + delay_ms, len(self.trace), action))

    def _pass_time(self, busy: bool) -> None:
        times = [time for time, _, _ in self.later]
        times.extend(self.stalled.values())
        wakeup = self.master.next_wakeup_ms()
        if wakeup is not None:
            times.append(wakeup)
        for process in self.processes.values():
            if not process.frozen:
                times.append(process.next_heartbeat)
                wakeup = process.host.next_wakeup_ms()
                if wakeup is not None:
                    times.append(wakeup)
                calls_ms = process.calls.next_ms() if process.calls is not None else None
                if calls_ms is not None:
                    times.append(self.clock.now + calls_ms)
        target = max(self.clock.now + 1, min(times, default=self.clock.now + 1))
        # While something else could happen, time passes in small amounts only.
        self.clock.now = min(target, self.clock.now + self.rng.randrange(1, 20)) if busy else target
        self.trace.append(f"time {self.clock.now}")
        due = [entry for entry in self.later if entry[0] <= self.clock.now]
        self.later = [entry for entry in self.later if entry[0] > self.clock.now]
        self.stalled = {w: until for w, until in self.stalled.items() if until > self.clock.now}
        if self.filesystem is not None:
            self.filesystem.may_crash = False
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

    def fault(self, what: str) -> None:
        self.budget.spend(f"tick {self.ticks}: {what}")

    def crash(self, process: SimulatedProcess) -> None:
        """The process dies; what it had sent may or may not arrive."""
        launch = process.key[0]
        self._kill(process.key)
        if self.rng.random() < 0.9:
            # The cluster notices, at once or after a while; the siblings live on until told.
            delay = self.rng.randrange(0, 2000)
            self.at(delay, lambda: self.master.launch_ended(launch, PenstockError("killed")))
        self.at(self.rng.randrange(2000, 6000), lambda: self._end_launch(launch))

    def _kill(self, key: tuple[int, int]) -> None:
        process = self.processes.pop(key, None)
        if process is None:
            return
        process.ended()
        self._unreachable(key)
        for pair, frames in self.network.items():
            if pair[0] == key:
                self._lose_tail(frames)
        self._lose_tail(process.to_master)
        if process.to_master:
            self._letters[key] = process.to_master

    def _unreachable(self, key: tuple[int, int]) -> None:
        self.network = {pair: f for pair, f in self.network.items() if pair[1] != key}

    def _lose_tail(self, messages: deque[Any]) -> None:
        for _ in range(self.rng.randrange(len(messages) + 1)):
            messages.pop()

    def _gone(self, process: SimulatedProcess) -> None:
        """A process that was told to leave has left."""
        launch = process.key[0]
        if process.to_master:
            self._letters[process.key] = process.to_master
        self.processes.pop(process.key, None)
        process.ended()
        self._unreachable(process.key)
        if not any(key[0] == launch for key in self.processes):
            self.at(self.rng.randrange(0, 50), lambda: self.master.launch_ended(launch, None))


_ACTIONS: dict[str, Callable[[Simulation, Any], None]] = {
    "turn": Simulation._turn,
    "calls": Simulation._calls,
    "up": Simulation._up,
    "down": Simulation._down,
    "storage": Simulation._storage,
    "frame": Simulation._frame,
    "letter": Simulation._letter,
}
