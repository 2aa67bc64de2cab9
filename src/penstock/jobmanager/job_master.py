"""The JobMaster: carries one job from start to end, over as many attempts as it takes.

It is a state machine in one thread. Everything it knows arrives as a call (a message of a slot,
the end of a launch, the result of slow work, the clock); everything it does goes out through its
environment. So a simulation can drive it exactly as a cluster does.

    launching --all slots registered--> recovering --a checkpoint is chosen--> restoring
        --every slot has its state--> settling --output is committed or aborted--> starting
        --all running--> running --all at end--> ending

A failure leads back to recovering, in place, or to launching, when a slot is gone. Before it
launches again, and while it waits for slots, the JobMaster looks whether another driver has taken
the job over. When a slot finds the checkpoint damaged, and the driver does too, the next older one
is taken.

A change of parallelism is a relaunch too, from a checkpoint that was taken for it
(`penstock.jobmanager.live_rescale`).

Nothing of an old attempt counts: messages carry their attempt, slots carry their launch.
"""

from __future__ import annotations

import logging
from typing import Any

from penstock.common.job_status import JobStatus
from penstock.common.plain import Plain
from penstock.errors import (
    CheckpointError,
    IncompatibleStateError,
    NotEnoughSlotsError,
    PenstockError,
    SlotLostError,
    SupersededError,
)
from penstock.graph.execution_graph import SubtaskId
from penstock.jobmanager.attempt import Attempt
from penstock.jobmanager.checkpoints import Checkpoints
from penstock.jobmanager.client_credits import ClientCredits
from penstock.jobmanager.endings import HOPELESS, MISTAKES, as_penstock, settle
from penstock.jobmanager.environment import JobMasterEnvironment
from penstock.jobmanager.job import Job
from penstock.jobmanager.live_rescale import LiveRescale, RescaleRequest
from penstock.jobmanager.manual_requests import Answer
from penstock.jobmanager.observations import Observations
from penstock.jobmanager.phases import Phase
from penstock.jobmanager.progress import Progress
from penstock.jobmanager.recovery import (
    StartPoint,
    confirmed_damage,
    find_start,
    settle_start,
)
from penstock.jobmanager.savepoints import SavepointRequest
from penstock.jobmanager.slots import Slots
from penstock.jobmanager.sources import close_all
from penstock.jobmanager.stalls import StallLog
from penstock.network.messages import EndAttempt, Heartbeat, Leave, Register, Stopped

log = logging.getLogger(__name__)

_LOOK_EVERY_MS = 2_000
"""How often the JobMaster looks whether something stands still."""

_OVERTAKEN_EVERY_MS = 3_000
"""How often a JobMaster that waits for slots looks whether another driver has the job."""

SETTLING_TRIES = 10
SETTLING_PAUSE_MS = 1_000
"""How often, and after what pause, the output of a finished job is settled: its storage may be away
for a moment, and nobody comes after."""
_STARTS = (Phase.RESTORING, Phase.STARTING)
"""While slots restore or open: how long that takes is theirs to say."""
_ATTEMPTS = (Phase.RESTORING, Phase.SETTLING, Phase.STARTING, Phase.RUNNING)
"""While slots have been told what to run."""


class JobMaster:
    """Runs one job."""

    def __init__(self, job: Job, environment: JobMasterEnvironment) -> None:
        self.job = job
        self.status = JobStatus.CREATED
        self.error: PenstockError | None = None
        self.notes: list[str] = []
        self._environment = environment
        self._clock = environment.clock
        self._slots = Slots(environment, job)
        self._credits = ClientCredits(environment, self._slots)
        self._checkpoints = Checkpoints(job, environment, self)
        self._rescale = LiveRescale(environment, self._checkpoints, self)
        self._phase = Phase.CREATED
        self._deadline: int | None = None
        self._start_by: int | None = None
        self._number = job.attempts_before
        self._again = 0
        self._restarts = job.restart.begin(environment.chance)
        self._restart_at = 0
        self._settling_tries = 0
        self._current: Attempt | None = None
        self._final: JobStatus | None = None
        self._observations = Observations(job, self._number)
        self._stalls = StallLog()
        self._look_at_ms = 0
        self._overtaken_at_ms: int | None = None

    # --- commands -----------------------------------------------------------------------------

    def start(self) -> None:
        """Begin. The checkpoint directory has been checked by whoever submitted the job."""
        self._set_status(JobStatus.RUNNING)
        self._launch_slots()

    def cancel(self) -> None:
        """Stop the job; the status becomes CANCELED when nothing of it is left.

        A job that is about to end ends as it would.
        """
        if self._final is None:
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

    def rescale(self, request: RescaleRequest) -> None:
        """Go on in another layout, from a checkpoint; refused, the job goes on as it is.

        It waits for a job that is starting.
        """
        self._rescale.ask(request)

    def client_moved(self) -> None:
        """The client took values, or may have: let sinks send on if it keeps up."""
        self._credits.client_moved()

    def progress(self) -> Progress:
        counts, seen = self._checkpoints.counts, self._observations
        return Progress(
            self.status,
            self._number - self.job.attempts_before,
            self._again,
            counts.completed,
            counts.failed,
            counts.last_duration_ms,
            seen.metrics(),
            dict(self._slots.registered),
            seen.strangers(),
            self._checkpoints.history(),
            dict(seen.reports),
            seen.starting() if self._phase in _STARTS else {},
        )

    # --- launching ----------------------------------------------------------------------------

    def _launch_slots(self) -> None:
        self._enter(Phase.LAUNCHING, self.job.timeouts.registration)
        self._overtaken_at_ms = self._clock.monotonic_ms() + _OVERTAKEN_EVERY_MS
        self._slots.start(self.job)
        self._observe()

    def _launch_again(self) -> None:
        """Launch, unless another driver has the job: that one needs the cores."""
        if self.job.store is None:
            self._launch_slots()
            return
        self._enter(Phase.LOOKING, None)
        self._environment.io.submit(self.job.store.check_current, self._looked_before_launch)

    def _looked_before_launch(self, _: None, error: Exception | None) -> None:
        if self._phase is not Phase.LOOKING:
            return
        if isinstance(error, SupersededError):
            self._fail(error)
        else:
            # A storage that does not answer is for the attempt to find out.
            self._launch_slots()

    def _look_while_launching(self, now: int) -> None:
        """A cluster that gives no slots may have given them to the driver that took over."""
        store, due = self.job.store, self._overtaken_at_ms
        if store is None or due is None or now < due:
            return
        # None until this look has ended: one after another.
        self._overtaken_at_ms = None
        launch = self._slots.launch

        def looked(_: None, error: Exception | None) -> None:
            if self._phase is not Phase.LAUNCHING or launch != self._slots.launch:
                return
            if isinstance(error, SupersededError):
                self._fail(error)
            else:
                self._overtaken_at_ms = self._clock.monotonic_ms() + _OVERTAKEN_EVERY_MS

        self._environment.io.submit(store.check_current, looked)

    def launch_ended(self, launch: int, error: BaseException | None) -> None:
        """The cluster says that a launch is over."""
        if launch != self._slots.launch or not self._slots.launched:
            return
        self._slots.launched = False
        if self._phase is Phase.UNLAUNCHING:
            self._unlaunched()
        elif self._phase is Phase.WAITING:
            pass
        elif self._phase is not Phase.ENDED:
            if isinstance(error, NotEnoughSlotsError):
                # Cores that were there before come back when Spark has replaced what was lost.
                self._fail(error, slot_lost=True, restart=self._number > self.job.attempts_before)
            elif isinstance(error, PenstockError) and error.lasting:
                self._fail(error, slot_lost=True, restart=False)
            else:
                reason = str(error) if error is not None else "its task ended"
                self._fail(SlotLostError(f"a slot was lost: {reason}"), slot_lost=True)

    def registered(self, message: Register) -> None:
        if message.launch != self._slots.launch or self._phase is not Phase.LAUNCHING:
            self._slots.turn_away(message.launch, message.slot)
            return
        self._slots.register(message)
        self._observations.heard(message.slot, self._clock.monotonic_ms())
        if self._slots.complete:
            self._begin_attempt()

    # --- starting an attempt ------------------------------------------------------------------

    def _begin_attempt(self) -> None:
        self._number += 1
        self._enter(Phase.RECOVERING, None)
        attempt, checkpoints = self._number, self._checkpoints
        undecided, had_checkpoint = list(checkpoints.undecided), checkpoints.confirmed > 0
        struck, io = dict(checkpoints.struck), self._environment.io

        def done(start: StartPoint | None, error: Exception | None) -> None:
            if attempt != self._number or self._phase is not Phase.RECOVERING:
                close_all(start.enumerators if start is not None else {})
                return
            if start is None:
                assert error is not None
                hopeless = isinstance(error, HOPELESS)
                self._fail(as_penstock(error), restart=not hopeless)
            else:
                self._recovered(start)

        io.submit(
            lambda: find_start(self.job, undecided, had_checkpoint, struck, io.each),
            done,
        )

    def _recovered(self, start: StartPoint) -> None:
        self._note(start.notes)
        self._observe()
        self._current = Attempt(
            self.job,
            self._number,
            start,
            self._environment,
            self._slots,
            self._checkpoints,
            self._observations,
            self._credits,
            self,
        )
        self._enter(Phase.RESTORING, self.job.timeouts.registration)
        limit = self.job.timeouts.start
        self._start_by = None if limit is None else self._clock.monotonic_ms() + limit
        self._current.prepare(*self._environment.new_keys())

    def _note(self, notes: list[str]) -> None:
        for note in notes:
            log.warning("%s", note)
            self.notes.append(note)

    def attempt_restored(self) -> None:
        """Every slot has its state: now it is certain which checkpoint the attempt begins with.

        So what that one covers is committed, and all else aborted, before anything is opened.
        """
        if self._phase is not Phase.RESTORING:
            return
        self._enter(Phase.SETTLING, None)
        attempt, job, start = self._number, self.job, self._attempt.start

        def done(notes: list[str] | None, error: Exception | None) -> None:
            if attempt != self._number or self._phase is not Phase.SETTLING:
                return
            if error is not None:
                self._fail(as_penstock(error), restart=not isinstance(error, HOPELESS))
            else:
                self._note(notes or [])
                self._settled(start)

        commits, struck = self._checkpoints.committing, dict(self._checkpoints.struck)
        self._environment.io.submit(
            lambda: settle_start(job, commits, start.metadata, struck), done
        )

    def _settled(self, start: StartPoint) -> None:
        self._checkpoints.restored(start)
        self._observations.functions_begin()
        self._enter(Phase.STARTING, None)
        self._put_off()
        self._attempt.go()

    def damaged(self, path: str, error: BaseException) -> None:
        """A slot says so. The driver looks itself: it may be the slot that sees it wrong."""
        if self._phase is not Phase.RESTORING:
            return
        self._enter(Phase.SETTLING, None)
        attempt, job, start = self._number, self.job, self._attempt.start

        def done(damage: str | None, unknown: Exception | None) -> None:
            if attempt != self._number or self._phase is not Phase.SETTLING:
                return
            if damage is None:
                self._fail(as_penstock(error if unknown is None else unknown))
            else:
                self._checkpoints.struck[start.checkpoint] = damage
                log.warning("checkpoint %d cannot be used: %s", start.checkpoint, damage)
                self._try_older()

        self._environment.io.submit(lambda: confirmed_damage(job, start, path), done)

    def _try_older(self) -> None:
        """Begin again, with another checkpoint. That is no failure of the job."""
        self._attempt.close()
        self._restart_at = self._clock.monotonic_ms()
        self._enter(Phase.STOPPING, self.job.timeouts.stop)
        self._slots.ask_all(EndAttempt(self._number))

    def _put_off(self) -> None:
        """A slot is busy with starting, or about to be: how long that takes is not ours to say."""
        later = self._clock.monotonic_ms() + self.job.timeouts.registration
        self._deadline = later if self._start_by is None else min(later, self._start_by)

    def attempt_runs(self) -> None:
        """Every slot runs its part of the current attempt."""
        if self._phase is Phase.STARTING:
            current = self._attempt
            self._enter(Phase.RUNNING, None)
            self._set_status(JobStatus.RUNNING)
            self._checkpoints.attempt_started(current.start)
            self._rescale.attempt_runs()
            current.begin()
            self.checkpoint_over()

    # --- messages of slots --------------------------------------------------------------------

    def heard(self, launch: int, slot: int, at_ms: int) -> None:
        """A slot of `launch` gave a sign of life at that time; its message may follow later."""
        if launch == self._slots.launch:
            self._observations.heard(slot, at_ms)

    def handle(self, launch: int, message: Any, at_ms: int | None = None) -> None:
        """Take a message in that came from a slot of `launch`, at that time or just now."""
        if isinstance(message, Register):
            self.registered(message)
            return
        if launch != self._slots.launch:
            if isinstance(message, Heartbeat):
                # A slot that was given up and did not notice.
                self._slots.turn_away(launch, message.slot)
            return
        at_ms = self._clock.monotonic_ms() if at_ms is None else at_ms
        if isinstance(message, Heartbeat):
            self._observations.heard(message.slot, at_ms)
        if message.attempt != self._number:
            return
        if isinstance(message, Stopped):
            self._stopped(message)
        elif isinstance(message, Heartbeat):
            self._heartbeat(message, at_ms)
        elif self._phase in _ATTEMPTS:
            self._attempt.handle(message)

    def _heartbeat(self, message: Heartbeat, at_ms: int) -> None:
        if self._phase in _STARTS and message.starting is not None:
            self._put_off()
        self._observations.heartbeat(message, at_ms)
        for align in self._observations.misaligned(self._clock.monotonic_ms()):
            self._slots.tell_subtask(SubtaskId(*align.subtask), align)
        if self._phase is Phase.RUNNING:
            self._say_what_stands()

    def _say_what_stands(self) -> None:
        now_ms = self._clock.monotonic_ms()
        if now_ms >= self._look_at_ms:
            self._look_at_ms = now_ms + _LOOK_EVERY_MS
            for line in self._stalls.news(self.job.graph, self.progress(), self._clock.now_ms()):
                log.warning("%s", line)

    # --- another layout -----------------------------------------------------------------------

    def runs_now(self) -> bool:
        """Whether an attempt runs, or is only to be waited for."""
        return self._phase is Phase.RUNNING

    def hindrance(self) -> str | None:
        """Why no attempt will be held at a checkpoint any more."""
        if self._final is not None:
            return f"it is {self._final.value.lower()}"
        return "it has come to its end" if self.runs_now() and self._attempt.at_end else None

    def relaunch_as(self, job: Job) -> None:
        """Every subtask stands still at a complete checkpoint: go on from there as `job`."""
        self._credits.forget()
        self._attempt.close()
        self._lay_out(job)
        self._set_status(JobStatus.RESTARTING)
        # Processes that end by themselves are warm for the next launch.
        self.tell_all(Leave(self.job.timeouts.stop))
        self._enter(Phase.UNLAUNCHING, self.job.timeouts.stop)

    def _go_back(self, error: PenstockError) -> None:
        """The new slots do not all run: the old layout, from the same checkpoint."""
        log.warning("the job goes back to the parallelism that it had: %s", error)
        self._attempt_ended()
        self._lay_out(self._rescale.way_back())
        self._rescale.over(f"it went back to how it ran before: {error.summary()}")
        self._unlaunch()

    def _lay_out(self, job: Job) -> None:
        self.job = job
        self._checkpoints.lay_out(job)
        self._observations.carry()
        self._restart_at = self._clock.monotonic_ms()

    # --- the end of the input -----------------------------------------------------------------

    def checkpoint_over(self) -> None:
        """When every subtask is at its end, one more checkpoint commits the last output."""
        if self._phase is Phase.RUNNING and self._attempt.at_end:
            self._checkpoints.finish(self._attempt.prepared_output())

    def done(self) -> None:
        """The last output is committed."""
        self._end(JobStatus.FINISHED)

    def _end(self, final: JobStatus, error: PenstockError | None = None) -> None:
        """Let every slot go, then be `final`."""
        self._final, self.error = final, error
        self._rescale.over(f"it is {final.value.lower()}")
        self._attempt_ended()
        if not self._slots.launched:
            self._ended()
        elif final is JobStatus.FINISHED:
            self.tell_all(Leave(self.job.timeouts.finish))
            self._enter(Phase.UNLAUNCHING, self.job.timeouts.finish)
        else:
            self.tell_all(Leave(self.job.timeouts.stop // 3, self.job.timeouts.notice))
            self._enter(Phase.UNLAUNCHING, self.job.timeouts.stop)
            self._slots.cancel(self.job.timeouts.stop // 3)

    def _ended(self) -> None:
        """Nothing runs any more: settle the output, clear up, and be final."""
        self._checkpoints.over()
        self._settle(SETTLING_TRIES if self._final is JobStatus.FINISHED else 1)

    def _settle(self, tries: int) -> None:
        """Settle the output; a sink may have something left to do even after the last commit."""
        assert self._final is not None
        final, job, checkpoints = self._final, self.job, self._checkpoints
        self._enter(Phase.ENDED, None)

        def done(_: None, error: Exception | None) -> None:
            if error is not None and tries > 1:
                log.info("the job's files could not all be settled yet: %s", error)
                self._settling_tries = tries - 1
                self._enter(Phase.ENDED, SETTLING_PAUSE_MS)
                return
            if error is not None:
                log.warning("the job's files could not all be settled: %s", error)
            self._environment.io.submit(checkpoints.committing.close, closed)

        def closed(_: None, error: Exception | None) -> None:
            if error is not None:
                log.warning("a sink could not be closed: %s", error)
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
        if self._rescale.moving and not isinstance(error, SupersededError):
            self._go_back(error)
            return
        self._attempt_ended()
        restart = restart and not isinstance(error, (SupersededError, IncompatibleStateError))
        delay = self._restarts.failed(self._clock.monotonic_ms()) if restart else None
        if delay is None:
            self._set_status(JobStatus.FAILING)
            self._end(JobStatus.FAILED, error)
            return
        self._again += 1
        log.warning("attempt %d failed, the job restarts: %s", self._number, error)
        self.error = error
        self._set_status(JobStatus.RESTARTING)
        self._restart_at = self._clock.monotonic_ms() + delay
        if slot_lost or not self._slots.complete:
            self._unlaunch()
        else:
            self._enter(Phase.STOPPING, self.job.timeouts.stop)
            self._slots.ask_all(EndAttempt(self._number))

    def _attempt_ended(self) -> None:
        self._credits.forget()
        self._checkpoints.attempt_ended()
        if self._current is not None:
            self._current.close()

    def _stopped(self, message: Stopped) -> None:
        if self._slots.answered(message.slot) and self._phase is Phase.STOPPING:
            self._wait()

    def _unlaunch(self) -> None:
        """A slot is gone or does not answer: let the others go and launch anew."""
        if not self._slots.launched:
            self._wait()
            return
        self.tell_all(Leave())
        self._enter(Phase.UNLAUNCHING, self.job.timeouts.launch_end)
        self._slots.cancel(0)

    def _unlaunched(self) -> None:
        self._slots.gone()
        if self._final is not None:
            self._ended()
        else:
            self._wait()

    def _wait(self) -> None:
        delay = max(0, self._restart_at - self._clock.monotonic_ms())
        self._enter(Phase.WAITING, delay)
        self.tick()

    def _restart(self) -> None:
        if self._slots.complete:
            self._begin_attempt()
        else:
            self._launch_again()

    # --- the clock ----------------------------------------------------------------------------

    def tick(self) -> None:
        """Do what is due by now."""
        now = self._clock.monotonic_ms()
        if self._deadline is not None and now >= self._deadline:
            self._deadline = None
            self._timed_out()
            return
        if self._phase in _ATTEMPTS or self._phase is Phase.RECOVERING:
            silent = self._observations.silent(self._environment.listened_ms())
            if silent is not None:
                host, pid = self._slots.registered.get(silent, ("?", 0))
                lost = SlotLostError(
                    f"slot {silent} (process {pid} on {host}) has not been heard of for "
                    f"{self.job.timeouts.heartbeat / 1000:g} s"
                )
                self._fail(lost, slot_lost=True)
                return
        if self._phase is Phase.LAUNCHING:
            self._look_while_launching(now)
        if self._phase is Phase.RUNNING:
            self._attempt.check_sources()
        if self._phase is Phase.RUNNING:
            self._checkpoints.tick(now)

    def next_wakeup_ms(self) -> int | None:
        times = [self._deadline]
        if self._phase is Phase.LAUNCHING and self.job.store is not None:
            times.append(self._overtaken_at_ms)
        if self._phase in _ATTEMPTS or self._phase is Phase.RECOVERING:
            times.append(self._observations.next_check_ms())
        if self._phase is Phase.RUNNING:
            times.append(self._checkpoints.next_wakeup_ms())
        return min((time for time in times if time is not None), default=None)

    def _timed_out(self) -> None:
        if self._phase is Phase.WAITING:
            self._restart()
        elif self._phase is Phase.STOPPING:
            self._unlaunch()
        elif self._phase is Phase.ENDED:
            self._settle(self._settling_tries)
        elif self._phase is Phase.UNLAUNCHING:
            asked_only = self._final is JobStatus.FINISHED or self._rescale.moving
            if self._slots.launched and asked_only:
                self._slots.cancel(0)
            self._unlaunched()
        elif self._phase is Phase.LAUNCHING:
            lost = SlotLostError(
                f"{self._slots.missing} of {self.job.graph.slots} slots did not start within "
                f"{self.job.timeouts.registration / 1000:g} s; are the cluster's cores busy with "
                "other work?"
            )
            self._fail(lost, slot_lost=True)
        elif self._phase in _STARTS:
            self._fail(SlotLostError(self._not_started()), slot_lost=True)

    def _not_started(self) -> str:
        if self._start_by is None or self._clock.monotonic_ms() < self._start_by:
            return "a slot did not start its part of the job"
        busy = [f"slot {slot}: {s}" for slot, s in sorted(self._observations.starting().items())]
        limit = (self.job.timeouts.start or 0) / 1000
        return (
            f"the job did not start within {limit:g} s, which is penstock.start.timeout; "
            + "; ".join(busy or ["no slot says why"])
        )

    # --- small things -------------------------------------------------------------------------

    def _enter(self, phase: Phase, timeout_ms: int | None) -> None:
        self._phase = phase
        self._deadline = None if timeout_ms is None else self._clock.monotonic_ms() + timeout_ms

    def _set_status(self, status: JobStatus) -> None:
        if status is not self.status:
            self.status = status
            self._environment.status_changed(status)

    @property
    def _attempt(self) -> Attempt:
        assert self._current is not None, "nothing is heard of an attempt before it is one"
        return self._current

    def _observe(self) -> None:
        slots, now = self._slots.registered, self._clock.monotonic_ms()
        self._observations.begin(self.job, self._number, slots, now)

    # --- what checkpoints need to know of the attempt -----------------------------------------

    @property
    def number(self) -> int:
        return self._number

    def runs(self, number: int) -> bool:
        return number == self._number and self._phase is Phase.RUNNING

    def tell_all(self, message: Any) -> None:
        self._slots.tell_all(message)

    def enumerator_states(self) -> dict[str, Plain]:
        return self._attempt.enumerator_states()

    def fail(self, error: BaseException) -> None:
        known = as_penstock(error)
        self._fail(known, restart=not (known.lasting or isinstance(known, MISTAKES)))
