"""The enumerators of an attempt: which splits are handed out, and when readers are to ask."""

from __future__ import annotations

import logging
from collections.abc import Iterator

from penstock.checkpoint.handles import SubtaskSnapshot
from penstock.common.plain import Plain
from penstock.connectors.source import SplitEnumerator
from penstock.graph.execution_graph import ExecutionGraph, SubtaskId
from penstock.jobmanager.recovery import StartPoint
from penstock.network.messages import AssignSplits

log = logging.getLogger(__name__)


class Sources:
    """The sources of a job, as the JobMaster sees them in one attempt."""

    def __init__(self, graph: ExecutionGraph, enumerators: dict[int, SplitEnumerator]) -> None:
        self._graph = graph
        self._enumerators = enumerators

    def close(self) -> None:
        """The attempt is over."""
        close_all(self._enumerators)
        self._enumerators = {}

    def states(self) -> dict[str, Plain]:
        """What has not been handed out yet, by uid of the source."""
        return {
            self._graph.job.vertex(vertex).uid: enumerator.snapshot()
            for vertex, enumerator in self._enumerators.items()
        }

    def answer(self, attempt: int, subtask: SubtaskId) -> AssignSplits:
        """The next splits for a reader that asks; the enumerator may raise anything."""
        # Assignments and triggers travel in order, so a split is in the enumerator's part of a
        # checkpoint or in the reader's, never in both or neither.
        enumerator = self._enumerators[subtask.vertex]
        splits = enumerator.next_splits(subtask.index)
        return AssignSplits(attempt, subtask, splits, enumerator.ask_again_ms(subtask.index))

    def first_words(self, attempt: int, start: StartPoint) -> Iterator[AssignSplits]:
        """Tell readers when to ask: one that was restored with splits may never run out of them.

        One without splits asks by itself. It would take this for the answer and ask again.
        """
        for vertex, enumerator in self._enumerators.items():
            for index in range(self._graph.job.vertex(vertex).parallelism):
                subtask = SubtaskId(vertex, index)
                restored = start.restored.get(subtask)
                ask_again_ms = enumerator.ask_again_ms(index)
                if restored is not None and _has_splits(restored) and ask_again_ms is not None:
                    yield AssignSplits(attempt, subtask, [], ask_again_ms)


def _has_splits(restored: SubtaskSnapshot) -> bool:
    return any(operator.splits for operator in restored.operators.values())


def close_all(enumerators: dict[int, SplitEnumerator]) -> None:
    for enumerator in enumerators.values():
        try:
            enumerator.close()
        except Exception as error:
            log.warning("an enumerator could not be closed: %s", error)
