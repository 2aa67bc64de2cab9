"""Runs a job in the simulator, for the same clients as a job on a cluster."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable
from concurrent.futures import Future

from penstock.common.job_execution_result import JobExecutionResult
from penstock.common.job_status import JobStatus
from penstock.jobmanager.job import Job
from penstock.jobmanager.live_rescale import RescaleRequest
from penstock.jobmanager.manual_requests import Answer
from penstock.jobmanager.progress import Progress
from penstock.jobmanager.runner import ResultListener, settle
from penstock.jobmanager.savepoints import SavepointRequest
from penstock.testing.faults import FaultRates, FaultyFileSystem
from penstock.testing.simulator import Simulation

_CLIENT_BACKLOG = 64
_PICTURE_TICKS = 50


class SimulatedRunner:
    """One job, simulated in a thread of its own.

    The client cannot change what happens, only when: while it does not take its records the whole
    simulation stands still. So a seed gives the same run whatever the client's pace; only a
    cancellation comes at a moment that the seed does not know.
    """

    def __init__(
        self,
        job: Job,
        seed: int,
        rates: FaultRates,
        filesystem: FaultyFileSystem,
        listener: ResultListener,
    ) -> None:
        self.result: Future[JobExecutionResult] = Future()
        self.simulation = Simulation(seed, job, rates, filesystem, listener.deliver)
        self._filesystem = filesystem
        self._listener = listener
        self._cancelled = threading.Event()
        self._asked: deque[Callable[[], None]] = deque()
        self._moved = threading.Condition()
        self._progress = self.simulation.master.progress()
        self._thread = threading.Thread(target=self._run, name=f"simulated-{job.name}", daemon=True)

    def start(self) -> None:
        self._thread.start()

    @property
    def job(self) -> Job:
        """The job as it is laid out now."""
        return self.simulation.master.job

    def status(self) -> JobStatus:
        return self.simulation.master.status

    def progress(self) -> Progress:
        """The picture of a moment ago."""
        return self._progress

    def cancel(self) -> None:
        self._cancelled.set()
        self.client_moved()

    def trigger_checkpoint(self, answer: Answer) -> None:
        """Ask for a checkpoint at the next tick; `answer` is called from another thread."""
        self._at_next_tick(lambda: self.simulation.master.trigger_checkpoint(answer))

    def savepoint(self, request: SavepointRequest) -> None:
        """Ask for a savepoint at the next tick."""
        self._at_next_tick(lambda: self.simulation.master.savepoint(request))

    def rescale(self, request: RescaleRequest) -> None:
        """Ask for another layout at the next tick."""
        self._at_next_tick(lambda: self.simulation.master.rescale(request))

    def _at_next_tick(self, ask: Callable[[], None]) -> None:
        self._asked.append(ask)
        if self.result.done():
            self._ask()

    def _ask(self) -> None:
        while self._asked:
            self._asked.popleft()()

    def client_moved(self) -> None:
        """The client took values."""
        with self._moved:
            self._moved.notify_all()

    def end(self) -> None:
        """Cancel the job if it still runs, and wait until nothing of it is left."""
        self.cancel()
        self._thread.join()

    def _run(self) -> None:
        simulation, began = self.simulation, self.simulation.clock.now
        try:
            simulation.master.start()
            while not simulation.over:
                if self._cancelled.is_set():
                    simulation.master.cancel()
                self._ask()
                simulation.tick()
                self._wait_for_client()
                if simulation.ticks % _PICTURE_TICKS == 0:
                    self._progress = simulation.master.progress()
        except BaseException as error:
            # A mistake of ours: the client hears of it rather than wait for ever.
            self.result.set_exception(error)
            return
        finally:
            simulation.end()
        self._filesystem.armed = False
        self._progress = simulation.master.progress()
        self._ask()
        settle(self.result, simulation.master, self._listener, simulation.clock.now - began)

    def _wait_for_client(self) -> None:
        with self._moved:
            self._moved.wait_for(
                lambda: self._listener.backlog() < _CLIENT_BACKLOG or self._cancelled.is_set()
            )
