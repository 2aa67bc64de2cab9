"""The JobMaster's checkpoints: carries out what the coordinator decides.

The coordinator decides; storage and sinks are slow and may fail; in between stands this. Whatever
comes back from slow work is looked at only while the attempt that asked for it still runs. How a
checkpoint comes to exist, or not, is in `penstock.jobmanager.completion`.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping
from typing import Any, Protocol

from penstock.checkpoint.coordinator import CheckpointCoordinator, PendingCheckpoint
from penstock.checkpoint.handles import SubtaskSnapshot
from penstock.checkpoint.history import CheckpointCounts, CheckpointRecord
from penstock.checkpoint.lineage import ATTEMPTS_PER_GENERATION
from penstock.checkpoint.metadata import CheckpointMetadata
from penstock.checkpoint.orphans import Live
from penstock.checkpoint.savepoints import SavepointLocation
from penstock.checkpoint.store import CheckpointStore
from penstock.common.plain import Plain
from penstock.errors import CheckpointError
from penstock.graph.execution_graph import SubtaskId
from penstock.jobmanager.committing import Commits, Committables, merge
from penstock.jobmanager.completion import Attempt as WritingAttempt
from penstock.jobmanager.completion import Completion, Copy, Plan
from penstock.jobmanager.environment import JobMasterEnvironment
from penstock.jobmanager.holding import Holding
from penstock.jobmanager.job import Job
from penstock.jobmanager.manifest import manifest
from penstock.jobmanager.manual_requests import Answer, ManualRequests
from penstock.jobmanager.recovery import StartPoint
from penstock.jobmanager.results import ResultGate
from penstock.jobmanager.retained import Retained
from penstock.jobmanager.savepoints import SavepointRequest, Savepoints, UnderWay
from penstock.jobmanager.sweeps import Sweeps
from penstock.network.elements import SavepointTarget
from penstock.network.messages import END, Abort, Acknowledge, Complete, Decline, Trigger

log = logging.getLogger(__name__)

AGAIN_AFTER_MS = 1_000
"""The pause before the last checkpoint of a job is tried again."""

_AT_END = "it has come to its end"


class Attempt(WritingAttempt, Protocol):
    """The running attempt, as far as its checkpoints are concerned."""

    def tell_all(self, message: Any) -> None: ...

    def enumerator_states(self) -> Mapping[str, Plain]:
        """What sources have not handed out yet, at this moment."""
        ...

    def checkpoint_over(self) -> None:
        """A checkpoint was completed or aborted; the next one may begin."""
        ...

    def done(self) -> None:
        """The last output is committed: the job is finished."""
        ...


class Checkpoints:
    """The checkpoints and commits of one job, over all of its attempts."""

    def __init__(self, job: Job, environment: JobMasterEnvironment, attempt: Attempt) -> None:
        self._job = job
        self._graph = job.graph
        self._environment = environment
        self._clock = environment.clock
        self._attempt = attempt
        first = job.store.first_id() if job.store is not None else 1
        self._coordinator: CheckpointCoordinator[SubtaskId] = CheckpointCoordinator(
            job.checkpoints, self._graph.subtasks(), first
        )
        self._results = ResultGate(environment.deliver)
        self._enumerator_states: dict[int, Mapping[str, Plain]] = {}
        self._requests = ManualRequests()
        self._savepoints = Savepoints()
        self._holding = Holding()
        self._retained = Retained(job.checkpoints.retained)
        self._sweeps = Sweeps(job, environment)
        self._began_with: str | None = None
        self._failed_at: int | None = None
        """When a checkpoint of this attempt failed last."""
        self._finish_at: int | None = None
        """When to try the last checkpoint again."""
        last_attempt = job.attempts_before + ATTEMPTS_PER_GENERATION
        interval, timeout = job.checkpoints.interval_ms, job.checkpoints.timeout_ms
        self.committing = Commits(self._graph.job, job.id, last_attempt, interval, timeout)
        self._completion = Completion(environment.io, attempt, self.committing, self)
        self.undecided: list[int] = []
        """Checkpoints that were under way when an attempt ended: they may exist or not."""
        self.struck: dict[int, str] = {}
        """Checkpoints that turned out to be damaged when slots read them, and how."""
        self.finishing = False
        """Whether the last checkpoint of the job is complete: what is left is to commit."""
        self.emitted = self._results.emitted

    # --- attempts -----------------------------------------------------------------------------

    @property
    def confirmed(self) -> int:
        return self._coordinator.confirmed

    @property
    def counts(self) -> CheckpointCounts:
        return self._coordinator.counts

    @property
    def holding(self) -> bool:
        """Whether a checkpoint that holds the job is wanted or under way."""
        return self._holding.asked

    @property
    def stopping(self) -> bool:
        """Whether the job is about to stop with a savepoint."""
        return self._savepoints.stopping

    def history(self) -> tuple[CheckpointRecord[SubtaskId], ...]:
        return self._coordinator.history(self._clock.monotonic_ms())

    def restored(self, start: StartPoint) -> None:
        """A new attempt begins at `start`; everything that it covers is committed."""
        self.undecided = []
        self.finishing = False
        self._began_with = start.began_with
        self._retained.restored(start)
        self.committing.restored()
        self._results.completed(start.checkpoint)
        self._results.forget()

    def attempt_started(self, start: StartPoint) -> None:
        self._coordinator.attempt_started(self._clock.monotonic_ms(), start.checkpoint)
        self._sweeps.attempt_started(self._clock.monotonic_ms())
        self._trigger_requested()

    def attempt_ended(self) -> None:
        self._ended()
        self._requests.fail_all("the attempt ended")
        self._savepoints.fail_all("the attempt ended")
        self._holding.failed("the attempt ended before its checkpoint was complete")

    def over(self) -> None:
        """The job has ended: there will be no more checkpoints."""
        self._results.forget()

    def lay_out(self, job: Job) -> None:
        """The attempt ended at a checkpoint that held it; the next runs `job`, another layout.

        Whoever waits for a checkpoint or savepoint waits for the next attempt.
        """
        self._ended()
        self._job, self._graph = job, job.graph
        self._coordinator.lay_out(job.graph.subtasks())

    def _ended(self) -> None:
        self._failed_at = self._finish_at = None
        self.undecided += self._coordinator.attempt_ended(self._clock.monotonic_ms())
        self._enumerator_states.clear()

    def carried(self, snapshots: Iterable[SubtaskSnapshot]) -> dict[str, bytes]:
        """The state that `snapshots` refer to, where it lives in this process."""
        store = self._job.store
        if store is None or not store.in_memory:
            return {}
        handles = (handle for snapshot in snapshots for handle in snapshot.segments())
        return {handle.path: store.read_segment(handle.path) for handle in handles}

    # --- triggering ---------------------------------------------------------------------------

    def tick(self, now_ms: int) -> None:
        for checkpoint in self._coordinator.expired(now_ms):
            waiting = self._names_of(self._coordinator.pending[checkpoint].waiting)
            seconds = self._job.checkpoints.timeout_ms / 1000
            self.given_up(checkpoint, f"it expired after {seconds:g} s, waiting for {waiting}")
        if (
            self._job.store is not None
            and self._attempt.runs(self._attempt.number)
            and self._coordinator.due(now_ms)
            and not self._savepoints.stopping
            and not self._holding.asked
        ):
            self._trigger()
        if self._finish_at is not None and now_ms >= self._finish_at:
            self._attempt.checkpoint_over()
        if self._attempt.runs(self._attempt.number):
            self._sweeps.tick(now_ms, self._live, self._superseded)

    def _live(self) -> Live:
        """What must not be swept, whatever the manifests say."""
        coordinator = self._coordinator
        doubtful = (checkpoint for checkpoint in self.undecided if checkpoint > self.confirmed)
        undecided = min((coordinator.undecided(), *doubtful))
        needed = coordinator.needed()
        needed = self.confirmed if needed is None else min(needed, self.confirmed)
        return Live(self._attempt.number, undecided, needed, self._retained.ids())

    def _superseded(self, error: Exception) -> None:
        if self._attempt.runs(self._attempt.number):
            self._attempt.fail(error)

    def _names_of(self, subtasks: set[SubtaskId]) -> str:
        first = min(subtasks)
        vertex = self._graph.job.vertex(first.vertex)
        name = f"{vertex.name} ({first.index + 1}/{vertex.parallelism})"
        return name if len(subtasks) == 1 else f"{name} and {len(subtasks) - 1} more"

    def request(self, answer: Answer) -> None:
        """Somebody asks for a checkpoint; `answer` hears what became of it."""
        if self._job.store is None:
            answer(None, CheckpointError("there are no checkpoints: set an interval first"))
            return
        self._requests.add(answer)
        self._trigger_requested()

    def request_savepoint(self, request: SavepointRequest) -> None:
        """Somebody asks for a savepoint, with checkpoints or without."""
        self._savepoints.add(request)
        self._trigger_requested()

    def hold(self, answer: Answer) -> None:
        """Take a checkpoint behind which every subtask stands still, when no other is under way.

        The job goes on if it fails, and only then.
        """
        self._holding.ask(answer)
        self._trigger_requested()

    def _trigger_requested(self) -> None:
        """Begin with what somebody waits for, if there is room."""
        if not self._attempt.runs(self._attempt.number):
            return
        if self._holding.waiting and not self._coordinator.pending:
            self._trigger(holds=True)
        while (
            self._coordinator.has_room()
            and not self._savepoints.stopping
            and not self._holding.asked
        ):
            if self._savepoints.waiting:
                self._trigger(self._savepoints.next())
            elif self._requests.waiting:
                self._trigger()
            else:
                return

    def next_wakeup_ms(self) -> int | None:
        regular, sweeps = self._coordinator.next_wakeup_ms(), self._sweeps.next_wakeup_ms()
        times = (regular, sweeps, self._finish_at)
        return min((time for time in times if time is not None), default=None)

    def finish(self, prepared: list[Committables]) -> None:
        """All input is processed: commit the last output, by one more checkpoint if there are any.

        Without checkpoints `prepared` is all the output there is.
        """
        self._finish_at = None
        if self._coordinator.pending or self.finishing:
            return
        if self._failed_at is not None:
            again = self._failed_at + AGAIN_AFTER_MS
            if self._clock.monotonic_ms() < again:
                # A storage that is away refuses at once: do not ask it as often as it answers.
                self._finish_at = again
                return
        self._holding.failed(_AT_END)
        if self._job.store is None:
            self.committing.add(merge(prepared))
            self._completion.commit(self._done)
        else:
            self._trigger()

    def _trigger(self, request: SavepointRequest | None = None, holds: bool = False) -> None:
        states = self._attempt.enumerator_states()
        now, wall = self._clock.monotonic_ms(), self._clock.now_ms()
        manual = request is not None or holds or self._requests.waiting
        pending = self._coordinator.trigger(now, wall, manual, request is not None)
        self._enumerator_states[pending.id] = states
        target: SavepointTarget | None = None
        if request is None:
            self._requests.triggered(pending.id)
        else:
            number = int(self._environment.chance() * 16**12)
            name = f"savepoint-{self._job.id[:6]}-{number:012x}"
            location = SavepointLocation(request.directory, name)
            self._savepoints.triggered(pending.id, request, location)
            target = SavepointTarget(request.directory, name, request.stop, request.drain)
        overtakes = self._job.checkpoints.overtakes_after_ms
        if request is not None or holds:
            overtakes = None
        if holds:
            self._holding.triggered(pending.id)
        number = self._attempt.number
        self._attempt.tell_all(Trigger(number, pending.id, pending.base, target, overtakes, holds))

    # --- completing ---------------------------------------------------------------------------

    def acknowledged(self, message: Acknowledge) -> None:
        subtask = SubtaskId(*message.subtask)
        if message.segments:
            self._store().keep_segments(message.segments)
        if message.copy is not None:
            self._savepoints.copied(message.checkpoint, subtask, message.copy)
        if self._coordinator.acknowledge(message.checkpoint, subtask, message.snapshot):
            self._write(self._coordinator.pending[message.checkpoint])

    def _write(self, pending: PendingCheckpoint[SubtaskId]) -> None:
        """Every subtask has acknowledged: bring the checkpoint into existence."""

        def metadata_of(snapshots: Mapping[SubtaskId, SubtaskSnapshot]) -> CheckpointMetadata:
            return manifest(
                self._job,
                pending.id,
                snapshots,
                self._attempt.number,
                self._clock.now_ms(),
                self._enumerator_states[pending.id],
                self.committing.unconfirmed(),
                self._began_with,
            )

        # A newer checkpoint that is complete covers what a savepoint covers.
        store = self._job.store if pending.id > self._coordinator.confirmed else None
        savepoint, copy = self._savepoints.get(pending.id), None
        if savepoint is not None:
            copy = Copy(savepoint.location, metadata_of(savepoint.copies))
        self._completion.begin(Plan(metadata_of(pending.acknowledged), store, copy))

    def doubtful(self, metadata: CheckpointMetadata, reason: str) -> None:
        """The storage does not answer: go on without knowing, and decide before a restart.

        If it exists all the same it is a cut like any other, and the next one covers it.
        """
        self.undecided.append(metadata.checkpoint)
        self._retained.doubt(metadata)
        self.given_up(metadata.checkpoint, reason)

    def exists(self, metadata: CheckpointMetadata) -> bool:
        """Tell slots and whoever asked for it; what it replaces is given up."""
        checkpoint, newest = metadata.checkpoint, self._coordinator.confirmed
        if not self._coordinator.completed(checkpoint, self._clock.monotonic_ms()):
            return False
        self._enumerator_states.pop(checkpoint, None)
        if checkpoint < newest:
            # A savepoint that took longer than the checkpoint after it.
            return True
        for older in self._coordinator.subsumed():
            self.given_up(older, f"checkpoint {checkpoint} was complete before it", counts=False)
        self._attempt.tell_all(Complete(self._attempt.number, checkpoint))
        if self._job.store is not None:
            self._retained.completed(metadata)
        if self._is_last(metadata):
            self.finishing = True
            self._coordinator.stop_triggering()
        self._requests.completed(checkpoint)
        return True

    def commits(self, metadata: CheckpointMetadata) -> None:
        """There is room for the next one; a job that is held by this one may move."""
        last = self._is_last(metadata)
        if self._holding.is_held(metadata.checkpoint):
            if last:
                self._holding.failed(_AT_END)
            else:
                self._holding.completed(metadata.checkpoint)
        elif not last:
            self._over()

    def settled(self, metadata: CheckpointMetadata) -> None:
        """All that it covers is committed, and marked: older ones are not needed any more.

        No attempt goes back behind it: its results can be given away.
        """
        last = self._is_last(metadata)
        self._results.completed(metadata.checkpoint)
        if self._job.store is not None:
            self._discard_before(metadata.checkpoint)
        self._savepoints.completed(metadata.checkpoint)
        if last:
            self._done()

    def _is_last(self, metadata: CheckpointMetadata) -> bool:
        """Whether the job ends with it."""
        savepoint = self._savepoints.get(metadata.checkpoint)
        return metadata.is_final() or (savepoint is not None and savepoint.request.stop)

    def declined(self, message: Decline) -> None:
        subtask = self._names_of({SubtaskId(*message.subtask)})
        self.given_up(message.checkpoint, f"{subtask} declined it: {message.reason}")

    def given_up(self, checkpoint: int, reason: str, counts: bool = True) -> None:
        """It will never exist; that `counts` among the failures that are tolerated."""
        now = self._clock.monotonic_ms()
        savepoint = self._savepoints.get(checkpoint)
        # A savepoint that fails is its caller's trouble and no sign that the job is in any.
        counts = counts and savepoint is None
        if not self._coordinator.abort(checkpoint, reason, now, counts):
            return
        if counts:
            self._failed_at = now
        log.log(
            logging.WARNING if counts else logging.INFO,
            *("checkpoint %d failed: %s", checkpoint, reason),
        )
        self._enumerator_states.pop(checkpoint, None)
        self._requests.failed(checkpoint, reason)
        if self._holding.is_held(checkpoint):
            self._holding.failed(f"checkpoint {checkpoint} failed: {reason}")
        if savepoint is not None:
            self._give_up(checkpoint, savepoint, reason)
            if savepoint.request.drain:
                return
        self._attempt.tell_all(Abort(self._attempt.number, checkpoint))
        for older, pending in list(self._coordinator.pending.items()):
            # A gate that hears of this abort lets older barriers pass too.
            if older < checkpoint and not pending.writing:
                self.given_up(
                    older, f"the later checkpoint {checkpoint} was given up", counts=False
                )
        if counts and self._coordinator.too_many_failures():
            most = self._job.checkpoints.tolerable_failures
            self._attempt.fail(
                CheckpointError(
                    f"checkpoint {checkpoint} failed: {reason}; in a row, more than the "
                    f"{most} that execution.checkpointing.tolerable-failed-checkpoints allows"
                )
            )
            return
        self._over()

    def _over(self) -> None:
        """There is room for the next one."""
        self._attempt.checkpoint_over()
        self._trigger_requested()

    def _give_up(self, checkpoint: int, savepoint: UnderWay, reason: str) -> None:
        """A savepoint has failed: its files go."""
        self._savepoints.failed(checkpoint, reason)
        self._environment.io.submit(savepoint.location.abandon, _note_failure)
        if savepoint.request.drain:
            # Event time is at its end: what comes from now on would all be late.
            self._attempt.fail(CheckpointError(f"the job could not be drained: {reason}"))

    # --- afterwards ---------------------------------------------------------------------------

    def _discard_before(self, settled: int) -> None:
        """Delete what is not to be retained; a newer one than `settled` may not be committed."""
        gone = self._retained.take_superfluous(settled, self._coordinator.needed())
        store = self._store()

        def discard() -> None:
            for checkpoint, segments in gone.items():
                store.discard(checkpoint, segments)

        if gone:
            self._environment.io.submit(discard, _note_failure)

    def _done(self) -> None:
        """The last output is committed."""
        if self._job.store is None:
            # Readers may tell whom they read from.
            self._attempt.tell_all(Complete(self._attempt.number, END))
        self._attempt.done()

    def _store(self) -> CheckpointStore:
        store = self._job.store
        assert store is not None, "there are no checkpoints without a store"
        return store


def _note_failure(_: None, error: Exception | None) -> None:
    if error is not None:
        log.warning("files of an old checkpoint could not be deleted: %s", error)
