"""One attempt of a job: its slots are prepared, told what to run, and then heard.

    Prepare --all have an address--> Deploy --all restored, output settled--> Go --all run-->
    splits, results, checkpoints, ends

Whether the attempt still counts, and what follows when it fails, is for its owner to say: the
JobMaster passes messages on for as long as it does.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

from penstock.common.plain import Plain
from penstock.errors import StorageError
from penstock.graph.execution_graph import SubtaskId
from penstock.jobmanager.checkpoints import Checkpoints
from penstock.jobmanager.client_credits import ClientCredits
from penstock.jobmanager.committing import Committables
from penstock.jobmanager.deployment import deployments
from penstock.jobmanager.environment import JobMasterEnvironment
from penstock.jobmanager.job import Job
from penstock.jobmanager.observations import Observations
from penstock.jobmanager.recovery import StartPoint
from penstock.jobmanager.slots import Slots
from penstock.jobmanager.sources import Sources
from penstock.network.messages import (
    Acknowledge,
    AssignSplits,
    AtEnd,
    Damaged,
    Decline,
    Emitted,
    Failed,
    Go,
    Prepare,
    Prepared,
    Restored,
    Running,
    SplitRequest,
)


class Owner(Protocol):
    """Who hears what becomes of an attempt."""

    def attempt_restored(self) -> None:
        """Every slot has restored its state, and waits to be told to go."""
        ...

    def damaged(self, path: str, error: BaseException) -> None:
        """A slot says that a file of the checkpoint is damaged, by that error."""
        ...

    def attempt_runs(self) -> None:
        """Every slot runs its part."""
        ...

    def fail(self, error: BaseException) -> None:
        """A slot, a source or a checkpoint has failed of that; all slots are there still."""
        ...

    def checkpoint_over(self) -> None:
        """The end of the input may have been reached."""
        ...


class Attempt:
    """What one attempt needs to know, from its start point on."""

    def __init__(
        self,
        job: Job,
        number: int,
        start: StartPoint,
        environment: JobMasterEnvironment,
        slots: Slots,
        checkpoints: Checkpoints,
        observations: Observations,
        credits: ClientCredits,
        owner: Owner,
    ) -> None:
        self.number = number
        self.start = start
        self._job = job
        self._slots = slots
        self._checkpoints = checkpoints
        self._observations = observations
        self._credits = credits
        self._owner = owner
        self._addresses: dict[int, str] = {}
        self._restoring: set[int] = set()
        self._sources = Sources(job.graph, number, start.enumerators, environment, self)
        self._subtasks = len(job.graph.subtasks())
        self._at_end: dict[SubtaskId, dict[str, tuple[Plain, ...]]] = {}

    @property
    def at_end(self) -> bool:
        """Whether all input is processed."""
        return len(self._at_end) == self._subtasks

    def prepared_output(self) -> list[Committables]:
        """What subtasks that are at their end had yet to commit."""
        return list(self._at_end.values())

    def enumerator_states(self) -> dict[str, Plain]:
        """What sources have not handed out yet, at this moment."""
        return self._sources.states()

    def check_sources(self) -> None:
        """Fail if a source has found out that it cannot go on."""
        self._sources.check()

    def close(self) -> None:
        """It is over."""
        self._sources.close()

    # --- starting -----------------------------------------------------------------------------

    def prepare(self, public_key: bytes, secret_key: bytes) -> None:
        """Have every slot open its end of the network."""
        self._slots.tell_all(Prepare(self.number, public_key, secret_key))

    def _prepared(self, message: Prepared) -> None:
        self._addresses[message.slot] = message.address
        if len(self._addresses) == self._job.graph.slots:
            self._restoring = set(self._addresses)
            carried = self._checkpoints.carried
            for slot, deploy in deployments(
                self._job, self.number, self.start, self._addresses, carried
            ):
                self._slots.tell(slot, deploy)

    def _restored(self, message: Restored) -> None:
        self._restoring.discard(message.slot)
        if not self._restoring:
            self._owner.attempt_restored()

    def _damaged(self, message: Damaged) -> None:
        self._owner.damaged(message.path, message.error)

    def go(self) -> None:
        """Have every slot open its functions and run."""
        self._slots.ask_all(Go(self.number))

    def _running(self, message: Running) -> None:
        if self._slots.answered(message.slot):
            self._owner.attempt_runs()

    def begin(self) -> None:
        """All run: tell readers when to ask for splits."""
        try:
            for word in self._sources.first_words(self.start):
                self.assign(word)
        except Exception as error:
            self._owner.fail(error)

    # --- messages of slots --------------------------------------------------------------------

    def handle(self, message: Any) -> None:
        """Take a message of this attempt in."""
        self._HANDLERS[type(message)](self, message)

    def _failed(self, message: Failed) -> None:
        self._owner.fail(message.error)

    def _split_request(self, message: SplitRequest) -> None:
        self._sources.asked(SubtaskId(*message.subtask))

    def assign(self, answer: AssignSplits) -> None:
        """An enumerator answers a reader."""
        self._slots.tell_subtask(SubtaskId(*answer.subtask), answer)

    def fail(self, error: BaseException) -> None:
        """An enumerator has failed."""
        self._owner.fail(error)

    def _emitted(self, message: Emitted) -> None:
        try:
            self._checkpoints.emitted(message)
        except StorageError as error:
            self._owner.fail(error)
            return
        self._credits.emitted(message)

    def _acknowledged(self, message: Acknowledge) -> None:
        self._observations.acknowledged(message)
        self._checkpoints.acknowledged(message)

    def _declined(self, message: Decline) -> None:
        self._checkpoints.declined(message)

    def _subtask_at_end(self, message: AtEnd) -> None:
        self._at_end[SubtaskId(*message.subtask)] = dict(message.committables)
        self._observations.at_end(message)
        self._owner.checkpoint_over()

    _HANDLERS: dict[type, Callable[[Attempt, Any], None]] = {
        Prepared: _prepared,
        Restored: _restored,
        Damaged: _damaged,
        Running: _running,
        Failed: _failed,
        SplitRequest: _split_request,
        Emitted: _emitted,
        Acknowledge: _acknowledged,
        Decline: _declined,
        AtEnd: _subtask_at_end,
    }
