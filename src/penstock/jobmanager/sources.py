"""The enumerators of an attempt: which splits are handed out, and when readers are to ask.

A reader that asks is answered at once, unless its enumerator must look for splits first. That
happens aside, and the answer follows; meanwhile the JobMaster does other things. Splits change
hands in its thread alone.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Protocol

from penstock.checkpoint.handles import SubtaskSnapshot
from penstock.common.plain import Plain
from penstock.connectors.source import SplitEnumerator
from penstock.graph.execution_graph import ExecutionGraph, SubtaskId
from penstock.jobmanager.environment import JobMasterEnvironment
from penstock.network.messages import AssignSplits

if TYPE_CHECKING:
    from penstock.jobmanager.recovery import StartPoint

log = logging.getLogger(__name__)


class Readers(Protocol):
    """The readers of an attempt, as their enumerators reach them."""

    def assign(self, answer: AssignSplits) -> None: ...

    def fail(self, error: BaseException) -> None:
        """An enumerator has failed of that, and so has the attempt."""
        ...


class Sources:
    """The sources of a job, as the JobMaster sees them in one attempt."""

    def __init__(
        self,
        graph: ExecutionGraph,
        attempt: int,
        enumerators: dict[int, SplitEnumerator],
        environment: JobMasterEnvironment,
        readers: Readers,
    ) -> None:
        self._graph = graph
        self._attempt = attempt
        self._enumerators = enumerators
        self._environment = environment
        self._readers = readers
        self._waiting: dict[int, list[SubtaskId]] = {}
        """Who waits for the look that is under way, by vertex."""

    def close(self) -> None:
        """The attempt is over."""
        close_all(self._enumerators)
        self._enumerators = {}
        self._waiting = {}

    def states(self) -> dict[str, Plain]:
        """What has not been handed out yet, by uid of the source."""
        return {
            self._graph.job.vertex(vertex).uid: enumerator.snapshot()
            for vertex, enumerator in self._enumerators.items()
        }

    def check(self) -> None:
        """End the attempt if an enumerator has found a reason for that by itself."""
        for enumerator in tuple(self._enumerators.values()):
            try:
                enumerator.check()
            except Exception as error:
                self._readers.fail(error)
                return

    def asked(self, subtask: SubtaskId) -> None:
        """A reader asks for splits: answer, or look first."""
        enumerator = self._enumerators[subtask.vertex]
        try:
            must_look = enumerator.must_look(subtask.index)
        except Exception as error:
            self._readers.fail(error)
            return
        if not must_look:
            self._answer(subtask)
        elif subtask.vertex in self._waiting:
            self._waiting[subtask.vertex].append(subtask)
        else:
            self._waiting[subtask.vertex] = [subtask]
            self._look(subtask.vertex, enumerator)

    def _look(self, vertex: int, enumerator: SplitEnumerator) -> None:
        def done(result: Any, error: Exception | None) -> None:
            if vertex not in self._enumerators:
                return  # the attempt is over
            waiting = self._waiting.pop(vertex)
            try:
                if error is not None:
                    raise error
                enumerator.found(result)
            except Exception as failure:
                self._readers.fail(failure)
                return
            for subtask in waiting:
                self._answer(subtask)

        self._environment.aside(enumerator.look, done)

    def _answer(self, subtask: SubtaskId) -> None:
        # Assignments and triggers travel in order, so a split is in the enumerator's part of a
        # checkpoint or in the reader's, never in both or neither.
        enumerator = self._enumerators.get(subtask.vertex)
        if enumerator is None:
            return  # the answer to a reader before this one has ended the attempt
        try:
            splits = enumerator.next_splits(subtask.index)
            again = enumerator.ask_again_ms(subtask.index)
            waited_for = splits == [] and enumerator.waited_for(subtask.index)
        except Exception as error:
            self._readers.fail(error)
            return
        self._readers.assign(AssignSplits(self._attempt, subtask, splits, again, waited_for))

    def first_words(self, start: StartPoint) -> Iterator[AssignSplits]:
        """Tell readers when to ask: one that was restored with splits may never run out of them.

        One without splits asks by itself. It would take this for the answer and ask again.
        """
        for vertex, enumerator in self._enumerators.items():
            for index in range(self._graph.job.vertex(vertex).parallelism):
                subtask = SubtaskId(vertex, index)
                restored = start.restored.get(subtask)
                ask_again_ms = enumerator.ask_again_ms(index)
                if restored is not None and _reads(restored) and ask_again_ms is not None:
                    yield AssignSplits(self._attempt, subtask, [], ask_again_ms)


def _reads(restored: SubtaskSnapshot) -> bool:
    """Whether a subtask goes on with splits."""
    return not restored.finished and any(
        operator.splits for operator in restored.operators.values()
    )


def close_all(enumerators: dict[int, SplitEnumerator]) -> None:
    for enumerator in enumerators.values():
        try:
            enumerator.close()
        except Exception as error:
            log.warning("an enumerator could not be closed: %s", error)
