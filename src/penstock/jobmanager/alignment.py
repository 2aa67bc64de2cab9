"""Watermark alignment: which sources may go on, and how far.

Sources of one group stay within a drift of the slowest one: a source that is further ahead reads
nothing until the others have caught up, so that what waits for them stays small.

>>> limits(drift_ms=100, watermarks={"a": 500, "b": 900})
600
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from penstock.checkpoint.handles import MAX_WATERMARK
from penstock.common.watermark_strategy import WatermarkAlignment
from penstock.graph.execution_graph import ExecutionGraph, SubtaskId
from penstock.graph.timing import strategy_of
from penstock.network.messages import Align, SubtaskMetrics


def limits(drift_ms: int, watermarks: Mapping[Any, int]) -> int:
    """How far the members of a group may read; one alone waits for nobody."""
    if len(watermarks) < 2:
        return MAX_WATERMARK
    return min(min(watermarks.values()) + drift_ms, MAX_WATERMARK)


class Alignment:
    """The groups of one job in one attempt."""

    def __init__(self, graph: ExecutionGraph, attempt: int) -> None:
        self._attempt = attempt
        self._members: dict[str, list[SubtaskId]] = {}
        self._alignments: dict[str, WatermarkAlignment] = {}
        self._updated_ms: dict[str, int] = {}
        self._told: dict[str, int] = {}
        for vertex in graph.job.vertices:
            for node in vertex.nodes:
                strategy = strategy_of(node.operator)
                if strategy is not None and strategy.alignment is not None:
                    group = strategy.alignment.group
                    self._alignments.setdefault(group, strategy.alignment)
                    members = self._members.setdefault(group, [])
                    members.extend(SubtaskId(vertex.id, n) for n in range(vertex.parallelism))

    def __bool__(self) -> bool:
        """Whether any source is to be aligned."""
        return bool(self._alignments)

    def update(self, metrics: Mapping[SubtaskId, SubtaskMetrics], now_ms: int) -> list[Align]:
        """What to tell whom, now that this is how the subtasks are doing."""
        messages = []
        for group, alignment in self._alignments.items():
            if now_ms - self._updated_ms.get(group, 0) < alignment.update_interval_ms:
                continue
            members = self._members[group]
            if not all(member in metrics for member in members):
                continue
            self._updated_ms[group] = now_ms
            watermarks = {m: metrics[m].watermark for m in members if not metrics[m].idle}
            active = {m: mark for m, mark in watermarks.items() if mark < MAX_WATERMARK}
            limit = limits(alignment.drift_ms, active)
            if limit != self._told.get(group):
                self._told[group] = limit
                messages += [Align(self._attempt, member, limit) for member in members]
        return messages
