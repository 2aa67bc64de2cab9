"""Why is the watermark where it is? For every operator: what holds it back, and since when.

Event time stands as far as the slowest split of the slowest source allows. The answer follows from
what the subtasks report: a subtask that makes watermarks names the split, any other one the input
channel that it waits for.
"""

from __future__ import annotations

import datetime
from collections.abc import Mapping
from dataclasses import dataclass

from penstock.checkpoint.handles import MAX_WATERMARK, MIN_WATERMARK
from penstock.graph.execution_graph import ExecutionGraph, SubtaskId
from penstock.graph.job_graph import JobVertex
from penstock.graph.operators import SourceOperator
from penstock.graph.timing import strategy_of
from penstock.network.messages import SubtaskMetrics


@dataclass(frozen=True)
class WatermarkExplanation:
    """The watermark of one subtask of one chain of operators."""

    operator: str
    subtask: int
    parallelism: int
    watermark: int
    idle: bool
    held_by: str | None
    """The split or the channel that is waited for; None where nothing is."""
    since_ms: int | None
    """When the watermark last moved, in milliseconds since the epoch; None: it never did."""
    release: str
    """What would let it go on."""
    is_origin: bool = False
    """Whether event time begins here: others only wait for such a one."""

    def __str__(self) -> str:
        where = f"{self.operator} ({self.subtask + 1}/{self.parallelism})"
        state = ", idle" if self.idle else ""
        held = "" if self.held_by is None else f", held back by {self.held_by}"
        since = "" if self.since_ms is None else f" since {_moment(self.since_ms)}"
        return f"{where}: watermark {watermark_text(self.watermark)}{state}{held}{since}; " + (
            self.release
        )


def explain_watermarks(
    graph: ExecutionGraph, metrics: Mapping[SubtaskId, SubtaskMetrics]
) -> list[WatermarkExplanation]:
    """One explanation for every subtask that has reported, sources first."""
    return [
        _explain(graph, subtask, metrics[subtask])
        for subtask in graph.subtasks()
        if subtask in metrics
    ]


def _explain(
    graph: ExecutionGraph, subtask: SubtaskId, metrics: SubtaskMetrics
) -> WatermarkExplanation:
    vertex = graph.job.vertex(subtask.vertex)
    held_by, release = _held(graph, vertex, subtask, metrics)
    return WatermarkExplanation(
        vertex.name,
        subtask.index,
        vertex.parallelism,
        metrics.watermark,
        metrics.idle,
        held_by,
        metrics.watermark_since_ms,
        release,
        any(strategy_of(node.operator) is not None for node in vertex.nodes),
    )


def _held(
    graph: ExecutionGraph, vertex: JobVertex, subtask: SubtaskId, metrics: SubtaskMetrics
) -> tuple[str | None, str]:
    if metrics.watermark == MAX_WATERMARK:
        return None, "its input has ended"
    if metrics.aligned:
        return (
            "its alignment group",
            "it goes on when the slowest source of the group has caught up",
        )
    if any(strategy_of(node.operator) is not None for node in vertex.nodes):
        split = "its input" if metrics.holder in (None, "None") else f"split {metrics.holder}"
        return split, (
            "a record with a later timestamp moves it; with_idleness() leaves out what is silent"
        )
    if isinstance(vertex.head.operator, SourceOperator):
        return "its source", (
            "the source makes no watermarks: give from_source() a strategy, or call "
            "assign_timestamps_and_watermarks()"
        )
    channels, holder = graph.input_channels(subtask), metrics.holder
    # Just after a change of parallelism a picture may be older than the layout.
    if metrics.idle or not isinstance(holder, int) or holder >= len(channels):
        return None, "it goes on when an input is active again"
    sender = graph.sender_of(channels[holder])
    name = graph.job.vertex(sender.vertex).name
    return (
        f"{name} ({sender.index + 1}/{graph.job.vertex(sender.vertex).parallelism})",
        "it goes on when that one does",
    )


def watermark_text(watermark: int) -> str:
    """A watermark for people."""
    if watermark == MIN_WATERMARK:
        return "none yet"
    if watermark == MAX_WATERMARK:
        return "at the end"
    return f"{watermark} ({_moment(watermark)})"


def _moment(ms: int) -> str:
    try:
        moment = datetime.datetime.fromtimestamp(ms / 1000, datetime.timezone.utc)
    except (OverflowError, ValueError, OSError):
        return str(ms)
    return moment.strftime("%Y-%m-%d %H:%M:%S.") + f"{ms % 1000:03d}Z"
