"""The slots of the newest launch: who has registered, who has yet to answer, what they are told.

A launch is one start of all slots by the cluster. Slots of an older launch are nobody any more:
what they say is not heard, and they are told to leave.
"""

from __future__ import annotations

from typing import Any

from penstock.graph.execution_graph import SubtaskId
from penstock.jobmanager.environment import JobMasterEnvironment
from penstock.jobmanager.job import Job
from penstock.network.messages import Leave, Register


class Slots:
    """The slots that a JobMaster speaks to, launch after launch."""

    def __init__(self, environment: JobMasterEnvironment, job: Job) -> None:
        self._environment = environment
        self._job = job
        self._unanswered: set[int] = set()
        self.launch = 0
        """The number of the newest launch."""
        self.launched = False
        """Whether the cluster may still run slots of it."""
        self.registered: dict[int, tuple[str, int]] = {}
        """Host and process id by slot."""

    @property
    def complete(self) -> bool:
        """Whether every slot is there."""
        return self.launched and len(self.registered) == self._job.graph.slots

    @property
    def missing(self) -> int:
        return self._job.graph.slots - len(self.registered)

    def start(self, job: Job) -> None:
        """Have the cluster start new ones, as many as `job` needs."""
        self._job = job
        self.launch += 1
        self.launched = True
        self.registered.clear()
        self._environment.launch(self.launch, job)

    def register(self, message: Register) -> None:
        self.registered[message.slot] = (message.host, message.pid)

    def turn_away(self, launch: int, slot: int) -> None:
        """A slot that is not wanted (any more)."""
        self._environment.tell(launch, slot, Leave())

    def gone(self) -> None:
        """Nothing of the launch is left, or what is left does not count."""
        self.launched = False
        self.registered.clear()

    def cancel(self, after_ms: int) -> None:
        """Have the cluster end them, unless they are gone by themselves after `after_ms`."""
        self._environment.cancel_launch(self.launch, after_ms)

    # --- speaking -----------------------------------------------------------------------------

    def tell(self, slot: int, message: Any) -> None:
        self._environment.tell(self.launch, slot, message)

    def tell_all(self, message: Any) -> None:
        for slot in self.registered:
            self.tell(slot, message)

    def tell_subtask(self, subtask: SubtaskId, message: Any) -> None:
        self.tell(self._job.graph.slot_of(subtask), message)

    def ask_all(self, message: Any) -> None:
        """Tell all, and wait for an answer of each."""
        self._unanswered = set(self.registered)
        self.tell_all(message)

    def answered(self, slot: int) -> bool:
        """A slot has answered; whether all have by now."""
        self._unanswered.discard(slot)
        return not self._unanswered
