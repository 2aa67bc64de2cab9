"""Credits of sinks that speak to the client: held back while it does not keep up.

A client that takes its records slowly slows the sinks, and they their inputs, as any slow operator
does.
"""

from __future__ import annotations

from penstock.graph.execution_graph import SubtaskId
from penstock.jobmanager.environment import JobMasterEnvironment
from penstock.jobmanager.slots import Slots
from penstock.network.messages import EmitCredit, Emitted


class ClientCredits:
    """What sinks have sent in this attempt and may not yet send more for."""

    def __init__(self, environment: JobMasterEnvironment, slots: Slots) -> None:
        self._environment = environment
        self._slots = slots
        self._withheld: list[EmitCredit] = []

    def forget(self) -> None:
        """The attempt is over: the sinks of the next one have all their credits."""
        self._withheld.clear()

    def emitted(self, message: Emitted) -> None:
        """A sink has spent a credit."""
        subtask = SubtaskId(*message.subtask)
        self._withheld.append(EmitCredit(message.attempt, subtask, message.uid, 1))
        self.client_moved()

    def client_moved(self) -> None:
        """The client took values, or may have: let sinks send on if it keeps up."""
        if self._environment.client_keeps_up():
            for credit in self._withheld:
                self._slots.tell_subtask(SubtaskId(*credit.subtask), credit)
            self._withheld.clear()
