"""A JobMaster in a thread of the driver: its mailbox, its connection to the slots, its clock."""

from __future__ import annotations

import logging
import pickle
import random
import sys
import threading
import time
from collections.abc import Callable, Iterable
from concurrent.futures import Future
from dataclasses import replace
from typing import Any, Protocol

from penstock.common.clock import SystemClock
from penstock.common.job_execution_result import JobExecutionResult
from penstock.common.job_status import JobStatus
from penstock.common.mailbox import Mailbox
from penstock.common.payload import SlotPayload
from penstock.common.thread_io import ThreadIo
from penstock.errors import JobCancelledError, JobFailedError
from penstock.graph.pickling import pickle_graph
from penstock.jobmanager.job import Job
from penstock.jobmanager.job_master import JobMaster
from penstock.jobmanager.live_rescale import RescaleRequest
from penstock.jobmanager.manual_requests import Answer
from penstock.jobmanager.progress import Progress
from penstock.jobmanager.reports import accumulator_results, readings_of, unknown_side_outputs
from penstock.jobmanager.resource_manager import PendingLaunch, ResourceManager
from penstock.jobmanager.savepoints import SavepointRequest
from penstock.network.control_server import ControlServer
from penstock.network.curve import new_keys

log = logging.getLogger(__name__)

_LONGEST_SLEEP_MS = 100
_PROGRESS_SECONDS = 0.1
_CLIENT_BACKLOG = 64
_LAST_LINES_SECONDS = 1.0


class ResultListener(Protocol):
    """Where the values of sinks go that speak to the client."""

    def deliver(self, uid: str, subtask: int, values: Iterable[Any]) -> None: ...

    def backlog(self) -> int:
        """How many deliveries wait to be taken."""
        ...

    def flush(self, timeout_s: float | None = None) -> None:
        """Wait until what goes to a terminal or a file is there, at most for `timeout_s`."""
        ...


class JobRunner:
    """One job in this driver. Public methods may be called from any thread."""

    def __init__(self, job: Job, resources: ResourceManager, listener: ResultListener) -> None:
        self.clock = SystemClock()
        self.result: Future[JobExecutionResult] = Future()
        self._resources = resources
        self._listener = listener
        # Slots would not have waited longer: so late a user may want to know why nothing happens.
        still_after_ms = job.timeouts.heartbeat // 2
        name = f"the JobMaster of job {job.name!r}"
        listening = replace(resources.listening(), ports=job.ports.driver)
        self._server = ControlServer(listening, name, still_after_ms)
        self._mailbox = Mailbox(self._server.wake)
        self.io = ThreadIo(self._mailbox.put, "penstock-master-io")
        self._launches: dict[int, PendingLaunch] = {}
        # Kept: `penstock run` gives the name `__main__` back when the script is at its end.
        self._main = sys.modules["__main__"]
        self._program = (job.graph, pickle_graph(job.graph, self._main))
        self._started = time.monotonic()
        self._lock = threading.Lock()
        self._listeners: list[Callable[[JobStatus], None]] = []
        self._master = JobMaster(job, self)
        self._progress = self._master.progress()
        self._progress_at = 0.0
        self._listened_ms = self.clock.monotonic_ms()
        self._thread = threading.Thread(target=self._run, name=f"penstock-{job.name}", daemon=True)

    def start(self) -> None:
        self._thread.start()

    @property
    def job(self) -> Job:
        """The job as it is laid out now."""
        return self._master.job

    def status(self) -> JobStatus:
        return self._master.status

    def progress(self) -> Progress:
        """The picture of a moment ago."""
        return self._progress

    def cancel(self) -> None:
        self._mailbox.put(self._master.cancel)

    def trigger_checkpoint(self, answer: Answer) -> None:
        """Ask for a checkpoint; `answer` is called from the JobMaster's thread."""
        self._mailbox.put(lambda: self._master.trigger_checkpoint(answer))

    def savepoint(self, request: SavepointRequest) -> None:
        """Ask for a savepoint; `request.answer` is called from the JobMaster's thread."""
        self._mailbox.put(lambda: self._master.savepoint(request))

    def rescale(self, request: RescaleRequest) -> None:
        """Ask for another layout; `request.answer` is called from the JobMaster's thread."""
        self._mailbox.put(lambda: self._master.rescale(request))

    def client_moved(self) -> None:
        """The client took values."""
        self._mailbox.put(self._master.client_moved)

    def join(self, timeout: float | None = None) -> bool:
        """Wait for the job's end; whether it came in time."""
        self._thread.join(timeout)
        return not self._thread.is_alive()

    # --- the thread ---------------------------------------------------------------------------

    def _run(self) -> None:
        master = self._master
        try:
            self._server.start()
            master.start()
            while not master.status.is_terminal_state():
                for arrival in self._server.wait(self._timeout_ms()):
                    master.handle(*arrival)
                self._mailbox.run()
                self._listen(master)
                master.tick()
                self._update_progress(master)
        except BaseException as error:
            # A mistake of ours: end the slots and say what it was, rather than hang.
            for pending in self._launches.values():
                pending.cancel()
            self.result.set_exception(error)
            raise
        finally:
            self._server.close()
            self.io.close()
        self._mailbox.run()
        self._settle(master)

    def _listen(self, master: JobMaster) -> None:
        """Pass signs of life on, also those whose messages wait behind others."""
        heard = self._server.heard()
        for (launch, slot), at_ms in heard.slots.items():
            master.heard(launch, slot, at_ms)
        self._listened_ms = heard.listened_ms

    def _update_progress(self, master: JobMaster) -> None:
        """A new picture, now and then: messages may come by the thousand."""
        now = time.monotonic()
        if now - self._progress_at >= _PROGRESS_SECONDS:
            self._progress_at = now
            self._progress = master.progress()

    def _timeout_ms(self) -> int:
        wakeup = self._master.next_wakeup_ms()
        if wakeup is None:
            return _LONGEST_SLEEP_MS
        return max(0, min(_LONGEST_SLEEP_MS, wakeup - self.clock.monotonic_ms()))

    def _settle(self, master: JobMaster) -> None:
        self._progress = master.progress()
        runtime_ms = int((time.monotonic() - self._started) * 1000)
        settle(self.result, master, self._listener, runtime_ms)

    # --- the JobMaster's environment ----------------------------------------------------------

    def aside(self, work: Callable[[], Any], done: Callable[[Any, Any], None]) -> None:
        def run() -> None:
            try:
                result = work()
            except Exception as error:
                failure = error
                self._mailbox.put(lambda: done(None, failure))
            else:
                self._mailbox.put(lambda: done(result, None))

        # A daemon, for a listing of a file system that is away may never return.
        threading.Thread(target=run, name="penstock-look", daemon=True).start()

    def listened_ms(self) -> int:
        return self._listened_ms

    def tell(self, launch: int, slot: int, message: Any) -> None:
        self._server.send(launch, slot, message)

    def launch(self, launch: int, job: Job) -> None:
        server = self._server
        payload = SlotPayload(
            job.id,
            launch,
            server.address,
            server.public,
            server.client_public,
            server.client_secret,
            self._program_of(job),
            job.settings.heartbeat_interval_ms,
            job.timeouts.heartbeat,
            job.ports.slots,
        )

        def note(error: BaseException | None) -> None:
            self._launches.pop(launch, None)
            self._master.launch_ended(launch, error)

        def ended(error: BaseException | None) -> None:
            self._mailbox.put(lambda: note(error))

        self._launches[launch] = self._resources.start_slots(
            job, launch, pickle.dumps(payload), ended
        )

    def cancel_launch(self, launch: int, after_ms: int) -> None:
        pending = self._launches[launch]
        if after_ms == 0:
            pending.cancel()
            return
        timer = threading.Timer(after_ms / 1000, pending.cancel)
        timer.daemon = True
        timer.start()

    def prepare_launch(self, job: Job, held: int, done: Callable[[Exception | None], None]) -> None:
        program = self._program_of(job)

        def prepare() -> None:
            refused: Exception | None = None
            try:
                self._resources.prepare_slots(job, held, program)
            except Exception as error:
                refused = error
            self._mailbox.put(lambda: done(refused))

        # Cores may take a while to become free, and checkpoints must not wait for that.
        threading.Thread(target=prepare, name="penstock-prepare", daemon=True).start()

    def _program_of(self, job: Job) -> bytes:
        if self._program[0] is not job.graph:
            self._program = (job.graph, pickle_graph(job.graph, self._main))
        return self._program[1]

    def new_keys(self) -> tuple[bytes, bytes]:
        return new_keys()

    def deliver(self, uid: str, subtask: int, values: Iterable[Any]) -> None:
        self._listener.deliver(uid, subtask, values)

    def client_keeps_up(self) -> bool:
        return self._listener.backlog() < _CLIENT_BACKLOG

    def chance(self) -> float:
        return random.random()

    def status_changed(self, status: JobStatus) -> None:
        for listener in self._listeners:
            listener(status)

    def on_status(self, listener: Callable[[JobStatus], None]) -> None:
        """Hear of every change of status, from the JobMaster's thread. Call before `start`."""
        self._listeners.append(listener)


def settle(
    result: Future[JobExecutionResult],
    master: JobMaster,
    listener: ResultListener,
    runtime_ms: int,
) -> None:
    """Tell the client how the job of `master` ended, after the last line that it printed."""
    try:
        # Whoever cancels does not wait for a pipe that nobody reads.
        listener.flush(_LAST_LINES_SECONDS if master.status is JobStatus.CANCELED else None)
    except Exception as error:
        result.set_exception(error)
        return
    job, progress = master.job, master.progress()
    reports = progress.reports
    if master.status is JobStatus.FINISHED:
        if progress.restarts == 0:  # else an earlier attempt may have written to them
            for note in unknown_side_outputs(job.graph.job, reports):
                log.warning("%s", note)
                master.notes.append(note)
        readings, accumulators = readings_of(reports), accumulator_results(reports)
        notes = tuple(master.notes)
        result.set_result(JobExecutionResult(job.id, runtime_ms, notes, readings, accumulators))
    elif master.status is JobStatus.CANCELED:
        result.set_exception(JobCancelledError(f"job {job.name!r} was cancelled"))
    else:
        assert master.error is not None
        failed = JobFailedError(f"job {job.name!r} failed: {master.error.summary()}")
        failed.__cause__ = master.error
        result.set_exception(failed)
