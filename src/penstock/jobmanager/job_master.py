"""The JobMaster: carries one job from start to end, over as many attempts as it takes.

It is a state machine in one thread. Everything it knows arrives as a call (a message of a slot,
the end of a launch, the result of slow work, the clock); everything it does goes out through its
environment. So a simulation can drive it exactly as a cluster does.

    launching --all slots registered--> starting --all running--> running --all at end--> ending
        ^                                  ^  failure |   | failure
        +---- relaunch (a slot is gone) ---+- in place+---+

Nothing of an old attempt counts: messages carry their attempt, slots carry their launch.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any

from penstock.common.job_status import JobStatus
from penstock.common.plain import Plain
from penstock.errors import (
    ChannelBrokenError,
    CheckpointError,
    NotEnoughSlotsError,
    PenstockError,
    SlotLostError,
    SupersededError,
)
from penstock.graph.execution_graph import ChannelId, SubtaskId
from penstock.jobmanager.alignment import Alignment
from penstock.jobmanager.checkpoints import Checkpoints
from penstock.jobmanager.deployment import deployments
from penstock.jobmanager.endings import HOPELESS, settle
from penstock.jobmanager.environment import JobMasterEnvironment
from penstock.jobmanager.job import Job
from penstock.jobmanager.liveness import Liveness, liveness_of
from penstock.jobmanager.manual_requests import Answer
from penstock.jobmanager.phases import Phase
from penstock.jobmanager.progress import Progress
from penstock.jobmanager.recovery import StartPoint, find_start
from penstock.jobmanager.savepoints import SavepointRequest
from penstock.jobmanager.sources import Sources, close_all
from penstock.network.messages import (
    Acknowledge,
    AtEnd,
    Decline,
    EmitCredit,
    Emitted,
    EndAttempt,
    Failed,
    Heartbeat,
    Leave,
    Prepare,
    Prepared,
    Register,
    Running,
    SplitRequest,
    Stopped,
    SubtaskMetrics,
    SubtaskReport,
)

log = logging.getLogger(__name__)


class JobMaster:
    """Runs one job."""

    def __init__(self, job: Job, environment: JobMasterEnvironment) -> None:
        self.job = job
        self.status = JobStatus.CREATED
        self.error: PenstockError | None = None
        self.notes: list[str] = []
        self._environment = environment
        self._clock = environment.clock
        self._graph = job.graph
        self._subtasks = self._graph.subtasks()
        self._checkpoints = Checkpoints(job, environment, self)
        self._phase = Phase.CREATED
        self._deadline: int | None = None
        self._launch = 0
        self._launched = False
        self._attempt = job.attempts_before
        self._failures = 0
        self._restarts = job.restart.begin(environment.chance)
        self._restart_at = 0
        self._slots: dict[int, tuple[str, int]] = {}
        self._waiting_for: set[int] = set()
        self._addresses: dict[int, str] = {}
        self._start: StartPoint | None = None
        self._sources = Sources(self._graph)
        self._at_end: dict[SubtaskId, dict[str, tuple[Plain, ...]]] = {}
        self._withheld: list[tuple[int, EmitCredit]] = []
        self._reports: dict[SubtaskId, SubtaskReport] = {}
        self._final: JobStatus | None = None
        self._liveness = self._new_liveness()
        self._alignment = Alignment(self._graph, self._attempt)

    # --- commands -----------------------------------------------------------------------------

    def start(self) -> None:
        """Begin. The checkpoint directory has been checked by whoever submitted the job."""
        self._set_status(JobStatus.RUNNING)
        self._launch_slots()

    def cancel(self) -> None:
        """Stop the job; the status becomes CANCELED when nothing of it is left."""
        if self.status in (JobStatus.CREATED, JobStatus.RUNNING, JobStatus.RESTARTING):
            self._set_status(JobStatus.CANCELLING)
            self._end(JobStatus.CANCELED)

    def trigger_checkpoint(self, answer: Answer) -> None:
        """Take a checkpoint as soon as there is room for one; `answer` hears what became of it."""
        if self._phase is Phase.RUNNING:
            self._checkpoints.request(answer)
        else:
            answer(
                None, CheckpointError(f"no checkpoint was taken: the job is {self.status.value}")
            )

    def savepoint(self, request: SavepointRequest) -> None:
        """Take a savepoint as soon as there is room for one, and stop with it if it says so.

        It waits for a job that is starting.
        """
        if self._final is None:
            self._checkpoints.request_savepoint(request)
        else:
            reason = f"no savepoint was taken: the job is {self._final.value}"
            request.answer(None, CheckpointError(reason))

    def progress(self) -> Progress:
        beats = self._liveness.latest()
        counts = self._checkpoints.counts
        return Progress(
            self.status,
            self._attempt - self.job.attempts_before,
            self._failures,
            counts.completed,
            counts.failed,
            counts.last_duration_ms,
            self._metrics(),
            dict(self._slots),
            sum(beat.strangers for beat in beats.values()),
            self._checkpoints.history(),
            dict(self._reports),
        )

    def _metrics(self) -> dict[SubtaskId, SubtaskMetrics]:
        return {
            SubtaskId(*subtask): metrics
            for beat in self._liveness.latest().values()
            for subtask, metrics in beat.metrics.items()
        }

    # --- launching ----------------------------------------------------------------------------

    def _launch_slots(self) -> None:
        self._launch += 1
        self._launched = True
        self._slots.clear()
        self._liveness = self._new_liveness()
        self._alignment = Alignment(self._graph, self._attempt)
        self._enter(Phase.LAUNCHING, self.job.timeouts.registration)
        self._environment.launch(self._launch)

    def launch_ended(self, launch: int, error: BaseException | None) -> None:
        """The cluster says that a launch is over."""
        if launch != self._launch or not self._launched:
            return
        self._launched = False
        if self._phase is Phase.UNLAUNCHING:
            self._unlaunched()
        elif self._phase is Phase.WAITING:
            pass
        elif self._phase is not Phase.ENDED:
            if isinstance(error, NotEnoughSlotsError):
                # Cores that were there before come back when Spark has replaced what was lost.
                self._fail(error, slot_lost=True, restart=self._attempt > self.job.attempts_before)
            else:
                reason = str(error) if error is not None else "its task ended"
                self._fail(SlotLostError(f"a slot was lost: {reason}"), slot_lost=True)

    def registered(self, message: Register) -> None:
        if message.launch != self._launch or self._phase is not Phase.LAUNCHING:
            self._environment.tell(message.launch, message.slot, Leave())
            return
        self._slots[message.slot] = (message.host, message.pid)
        self._liveness.heard(message.slot, self._clock.monotonic_ms())
        if len(self._slots) == self._graph.slots:
            self._begin_attempt()

    # --- starting an attempt ------------------------------------------------------------------

    def _begin_attempt(self) -> None:
        self._attempt += 1
        self._enter(Phase.RECOVERING, None)
        attempt, checkpoints = self._attempt, self._checkpoints
        undecided, had_checkpoint = list(checkpoints.undecided), checkpoints.confirmed > 0

        def done(start: StartPoint | None, error: Exception | None) -> None:
            if attempt != self._attempt or self._phase is not Phase.RECOVERING:
                close_all(start.enumerators if start is not None else {})
                return
            if start is None:
                assert error is not None
                hopeless = isinstance(error, HOPELESS)
                self._fail(_as_penstock(error), restart=not hopeless)
            else:
                self._recovered(start)

        self._environment.io.submit(
            lambda: find_start(self.job, checkpoints.commits, undecided, had_checkpoint), done
        )

    def _recovered(self, start: StartPoint) -> None:
        for note in start.notes:
            log.warning("%s", note)
            self.notes.append(note)
        self._start = start
        self._checkpoints.restored(start)
        self._sources.begin(start.enumerators)
        self._at_end.clear()
        self._withheld.clear()
        self._reports.clear()
        self._liveness = self._new_liveness()
        self._alignment = Alignment(self._graph, self._attempt)
        self._addresses.clear()
        self._enter(Phase.STARTING, self.job.timeouts.registration)
        self._waiting_for = set(self._slots)
        public, secret = self._environment.new_keys()
        self.tell_all(Prepare(self._attempt, public, secret))

    def _prepared(self, message: Prepared) -> None:
        if self._phase is not Phase.STARTING:
            return
        self._addresses[message.slot] = message.address
        if len(self._addresses) == self._graph.slots:
            assert self._start is not None
            for slot, deploy in deployments(
                self.job, self._attempt, self._start, self._addresses, self._checkpoints.carried
            ):
                self._environment.tell(self._launch, slot, deploy)

    def _running(self, message: Running) -> None:
        self._waiting_for.discard(message.slot)
        if self._phase is Phase.STARTING and not self._waiting_for:
            assert self._start is not None
            self._enter(Phase.RUNNING, None)
            self._set_status(JobStatus.RUNNING)
            self._checkpoints.attempt_started(self._start)
            try:
                for word in self._sources.first_words(self._attempt, self._start):
                    self._tell_subtask(SubtaskId(*word.subtask), word)
            except Exception as error:
                self._fail(_as_penstock(error))
            self.checkpoint_over()

    # --- messages of slots --------------------------------------------------------------------

    def handle(self, launch: int, message: Any) -> None:
        """Take a message from a slot of `launch` in."""
        if isinstance(message, Register):
            self.registered(message)
            return
        if launch != self._launch:
            if isinstance(message, Heartbeat):
                # A slot that was given up and did not notice.
                self._environment.tell(launch, message.slot, Leave())
            return
        if isinstance(message, Heartbeat):
            self._liveness.heard(message.slot, self._clock.monotonic_ms())
        if message.attempt != self._attempt:
            return
        if isinstance(message, Stopped):
            self._stopped(message)
        elif isinstance(message, Heartbeat):
            self._heartbeat(message)
        elif self._phase in (Phase.STARTING, Phase.RUNNING):
            handler = self._HANDLERS[type(message)]
            handler(self, message)

    def _failed(self, message: Failed) -> None:
        self._fail(_as_penstock(message.error))

    def _split_request(self, message: SplitRequest) -> None:
        subtask = SubtaskId(*message.subtask)
        try:
            answer = self._sources.answer(self._attempt, subtask)
        except Exception as error:
            self._fail(_as_penstock(error))
            return
        self._tell_subtask(subtask, answer)

    def _emitted(self, message: Emitted) -> None:
        self._checkpoints.emitted(message)
        subtask = SubtaskId(*message.subtask)
        credit = EmitCredit(self._attempt, subtask, message.uid, 1)
        self._withheld.append((self._graph.slot_of(subtask), credit))
        self.client_moved()

    def client_moved(self) -> None:
        """The client took values, or may have: let sinks send on if it keeps up."""
        if self._environment.client_keeps_up():
            for slot, credit in self._withheld:
                self._environment.tell(self._launch, slot, credit)
            self._withheld.clear()

    def _heartbeat(self, message: Heartbeat) -> None:
        for subtask, report in message.reports.items():
            # A heartbeat may have been on its way for longer than the last word of a subtask.
            if subtask not in self._at_end:
                self._reports[SubtaskId(*subtask)] = report
        lost = self._liveness.heartbeat(message, self._clock.monotonic_ms())
        if lost is not None and self._phase is Phase.RUNNING:
            self._fail(
                ChannelBrokenError(f"the end of channel {ChannelId(*lost)} was lost on the way")
            )
        if self._alignment:
            self._align()

    def _align(self) -> None:
        for align in self._alignment.update(self._metrics(), self._clock.monotonic_ms()):
            slot = self._graph.slot_of(SubtaskId(*align.subtask))
            self._environment.tell(self._launch, slot, align)

    # --- the end of the input -----------------------------------------------------------------

    def _subtask_at_end(self, message: AtEnd) -> None:
        subtask = SubtaskId(*message.subtask)
        self._at_end[subtask] = dict(message.committables)
        if message.report is not None:
            self._reports[subtask] = message.report
        self.checkpoint_over()

    def checkpoint_over(self) -> None:
        """When every subtask is at its end, one more checkpoint commits the last output."""
        if self._phase is Phase.RUNNING and len(self._at_end) == len(self._subtasks):
            self._checkpoints.finish(list(self._at_end.values()))

    def done(self) -> None:
        """The last output is committed."""
        self._end(JobStatus.FINISHED)

    def _end(self, final: JobStatus, error: PenstockError | None = None) -> None:
        """Let every slot go, then be `final`."""
        self._final, self.error = final, error
        self._attempt_ended()
        if not self._launched:
            self._ended()
        elif final is JobStatus.FINISHED:
            self.tell_all(Leave(self.job.timeouts.finish))
            self._enter(Phase.UNLAUNCHING, self.job.timeouts.finish)
        else:
            self.tell_all(Leave(self.job.timeouts.stop // 3))
            self._enter(Phase.UNLAUNCHING, self.job.timeouts.stop)
            self._environment.cancel_launch(self._launch, self.job.timeouts.stop // 3)

    def _ended(self) -> None:
        """Nothing runs any more: settle the output, clear up, and be final."""
        assert self._final is not None
        final, job, checkpoints = self._final, self.job, self._checkpoints
        self._enter(Phase.ENDED, None)

        def done(_: None, error: Exception | None) -> None:
            if error is not None:
                log.warning("the job's files could not all be settled: %s", error)
            self._set_status(final)

        error = self.error
        self._environment.io.submit(lambda: settle(job, checkpoints, final, error), done)

    # --- failure ------------------------------------------------------------------------------

    def _fail(self, error: PenstockError, slot_lost: bool = False, restart: bool = True) -> None:
        """End the attempt; the restart strategy says what comes next."""
        if self._phase in (Phase.ENDED, Phase.UNLAUNCHING) and self._final is not None:
            return
        if self._phase in (Phase.UNLAUNCHING, Phase.WAITING):
            return
        if self._phase is Phase.STOPPING:
            if slot_lost:
                self._unlaunch()
            return
        self._attempt_ended()
        self._failures += 1
        restart = restart and not isinstance(error, SupersededError)
        delay = self._restarts.failed(self._clock.monotonic_ms()) if restart else None
        if delay is None:
            self._set_status(JobStatus.FAILING)
            self._end(JobStatus.FAILED, error)
            return
        log.warning("attempt %d failed, the job restarts: %s", self._attempt, error)
        self.error = error
        self._set_status(JobStatus.RESTARTING)
        self._restart_at = self._clock.monotonic_ms() + delay
        if slot_lost or len(self._slots) < self._graph.slots:
            self._unlaunch()
        else:
            self._enter(Phase.STOPPING, self.job.timeouts.stop)
            self._waiting_for = set(self._slots)
            self.tell_all(EndAttempt(self._attempt))

    def _attempt_ended(self) -> None:
        self._checkpoints.attempt_ended()
        self._sources.close()

    def _stopped(self, message: Stopped) -> None:
        self._waiting_for.discard(message.slot)
        if self._phase is Phase.STOPPING and not self._waiting_for:
            self._wait()

    def _unlaunch(self) -> None:
        """A slot is gone or does not answer: let the others go and launch anew."""
        if not self._launched:
            self._wait()
            return
        self.tell_all(Leave())
        self._enter(Phase.UNLAUNCHING, self.job.timeouts.launch_end)
        self._environment.cancel_launch(self._launch, 0)

    def _unlaunched(self) -> None:
        self._launched = False
        self._slots.clear()
        if self._final is not None:
            self._ended()
        else:
            self._wait()

    def _wait(self) -> None:
        delay = max(0, self._restart_at - self._clock.monotonic_ms())
        self._enter(Phase.WAITING, delay)
        self.tick()

    def _restart(self) -> None:
        if self._launched and len(self._slots) == self._graph.slots:
            self._begin_attempt()
        else:
            self._launch_slots()

    # --- the clock ----------------------------------------------------------------------------

    def tick(self) -> None:
        """Do what is due by now."""
        now = self._clock.monotonic_ms()
        if self._deadline is not None and now >= self._deadline:
            self._deadline = None
            self._timed_out()
            return
        if self._phase in (Phase.STARTING, Phase.RUNNING, Phase.RECOVERING):
            silent = self._liveness.silent(now)
            if silent is not None:
                host, pid = self._slots.get(silent, ("?", 0))
                lost = SlotLostError(
                    f"slot {silent} (process {pid} on {host}) has not been heard of for "
                    f"{self.job.timeouts.heartbeat / 1000:g} s"
                )
                self._fail(lost, slot_lost=True)
                return
        if self._phase is Phase.RUNNING:
            self._checkpoints.tick(now)

    def next_wakeup_ms(self) -> int | None:
        times = [self._deadline]
        if self._phase in (Phase.STARTING, Phase.RUNNING, Phase.RECOVERING):
            times.append(self._liveness.next_check_ms())
        if self._phase is Phase.RUNNING:
            times.append(self._checkpoints.next_wakeup_ms())
        return min((time for time in times if time is not None), default=None)

    def _timed_out(self) -> None:
        if self._phase is Phase.WAITING:
            self._restart()
        elif self._phase is Phase.STOPPING:
            self._unlaunch()
        elif self._phase is Phase.UNLAUNCHING:
            if self._launched and self._final is JobStatus.FINISHED:
                self._environment.cancel_launch(self._launch, 0)
            self._unlaunched()
        elif self._phase is Phase.LAUNCHING:
            missing = self._graph.slots - len(self._slots)
            lost = SlotLostError(
                f"{missing} of {self._graph.slots} slots did not start within "
                f"{self.job.timeouts.registration / 1000:g} s; are the cluster's cores busy with "
                "other work?"
            )
            self._fail(lost, slot_lost=True)
        elif self._phase is Phase.STARTING:
            self._fail(SlotLostError("a slot did not start its part of the job"), slot_lost=True)

    # --- small things -------------------------------------------------------------------------

    def _enter(self, phase: Phase, timeout_ms: int | None) -> None:
        self._phase = phase
        self._deadline = None if timeout_ms is None else self._clock.monotonic_ms() + timeout_ms

    def _set_status(self, status: JobStatus) -> None:
        if status is not self.status:
            self.status = status
            self._environment.status_changed(status)

    def tell_all(self, message: Any) -> None:
        for slot in self._slots:
            self._environment.tell(self._launch, slot, message)

    def _tell_subtask(self, subtask: SubtaskId, message: Any) -> None:
        self._environment.tell(self._launch, self._graph.slot_of(subtask), message)

    def _new_liveness(self) -> Liveness:
        liveness = liveness_of(self.job)
        for slot in self._slots:
            liveness.heard(slot, self._clock.monotonic_ms())
        return liveness

    # --- what checkpoints need to know of the attempt -----------------------------------------

    @property
    def number(self) -> int:
        return self._attempt

    def runs(self, number: int) -> bool:
        return number == self._attempt and self._phase is Phase.RUNNING

    def enumerator_states(self) -> dict[str, Plain]:
        return self._sources.states()

    def fail(self, error: Exception) -> None:
        self._fail(_as_penstock(error))

    def _acknowledged(self, message: Acknowledge) -> None:
        self._checkpoints.acknowledged(message)

    def _declined(self, message: Decline) -> None:
        self._checkpoints.declined(message)

    _HANDLERS: dict[type, Callable[[JobMaster, Any], None]] = {
        Prepared: _prepared,
        Running: _running,
        Failed: _failed,
        SplitRequest: _split_request,
        Emitted: _emitted,
        Acknowledge: _acknowledged,
        Decline: _declined,
        AtEnd: _subtask_at_end,
    }


def _as_penstock(error: BaseException) -> PenstockError:
    if isinstance(error, PenstockError):
        return error
    wrapped = PenstockError(f"{type(error).__name__}: {error}")
    wrapped.__cause__ = error
    return wrapped
