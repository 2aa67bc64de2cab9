"""What the slots of an attempt say of themselves: signs of life, metrics, what functions report.

Heartbeats bring all of it. A slot that falls silent is noticed here, and sources of one group are
kept together (`penstock.jobmanager.alignment`).
"""

from __future__ import annotations

from collections.abc import Iterable

from penstock.graph.execution_graph import SubtaskId
from penstock.jobmanager.alignment import Alignment
from penstock.jobmanager.job import Job
from penstock.jobmanager.liveness import Liveness
from penstock.network.messages import (
    Acknowledge,
    Align,
    AtEnd,
    Heartbeat,
    Starting,
    SubtaskMetrics,
    SubtaskReport,
)

EARLIER = -1
"""Stands for the vertex in reports of subtasks of an earlier layout."""


class Observations:
    """The newest that is known of the slots and subtasks of one attempt after another."""

    def __init__(self, job: Job, attempt: int) -> None:
        self.reports: dict[SubtaskId, SubtaskReport] = {}
        """What user functions registered, by subtask; of the attempt before until one runs."""
        self._final: set[SubtaskId] = set()
        self._at_cut: dict[SubtaskId, SubtaskReport] = {}
        self._carried: list[SubtaskReport] = []
        self._liveness: Liveness
        self._alignment: Alignment
        self.begin(job, attempt, (), 0)

    def begin(self, job: Job, attempt: int, slots: Iterable[int], now_ms: int) -> None:
        """Nothing has been heard yet, but that these slots are there."""
        self._liveness = Liveness(job.timeouts.heartbeat)
        for slot in slots:
            self._liveness.heard(slot, now_ms)
        self._alignment = Alignment(job.graph, attempt)

    def functions_begin(self) -> None:
        """Functions begin anew; what is carried over counts on."""
        self.reports = {SubtaskId(EARLIER, i): r for i, r in enumerate(self._carried)}
        self._carried = []
        self._final.clear()
        self._at_cut.clear()

    def carry(self) -> None:
        """The next attempt goes on where this one was held: accumulators count on."""
        earlier = [report for subtask, report in self.reports.items() if subtask.vertex == EARLIER]
        cut = [SubtaskReport((), r.accumulators, r.tags) for r in self._at_cut.values()]
        self._carried = [*(self._carried or earlier), *cut]
        self._at_cut.clear()

    def heard(self, slot: int, at_ms: int) -> None:
        """A slot was alive then."""
        self._liveness.heard(slot, at_ms)

    def heartbeat(self, message: Heartbeat, at_ms: int) -> None:
        """Take a heartbeat in that came at that time."""
        for subtask, report in message.reports.items():
            # A heartbeat may have been on its way for longer than the last word of a subtask.
            if subtask not in self._final:
                self.reports[SubtaskId(*subtask)] = report
        self._liveness.heartbeat(message, at_ms)

    def acknowledged(self, message: Acknowledge) -> None:
        """A subtask has done its part of a checkpoint, and perhaps says what it had by then."""
        if message.report is not None:
            self._at_cut[SubtaskId(*message.subtask)] = message.report

    def at_end(self, message: AtEnd) -> None:
        """A subtask has said its last word."""
        subtask = SubtaskId(*message.subtask)
        self._final.add(subtask)
        if message.report is not None:
            self.reports[subtask] = message.report

    def misaligned(self, now_ms: int) -> list[Align]:
        """What sources are to be told, now that this is how they are doing."""
        return self._alignment.update(self.metrics(), now_ms) if self._alignment else []

    def metrics(self) -> dict[SubtaskId, SubtaskMetrics]:
        return {
            SubtaskId(*subtask): metrics
            for beat in self._liveness.latest().values()
            for subtask, metrics in beat.metrics.items()
        }

    def starting(self) -> dict[int, Starting]:
        """What slots that do not run yet are busy with."""
        beats = self._liveness.latest().items()
        return {slot: beat.starting for slot, beat in beats if beat.starting is not None}

    def strangers(self) -> int:
        """How many connections slots have refused."""
        return sum(beat.strangers for beat in self._liveness.latest().values())

    def silent(self, now_ms: int) -> int | None:
        """A slot that has not been heard of for too long."""
        return self._liveness.silent(now_ms)

    def next_check_ms(self) -> int | None:
        """When a slot may have been silent for too long."""
        return self._liveness.next_check_ms()
