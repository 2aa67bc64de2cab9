"""What stands still while there is input: event time, a source, a checkpoint; and what to do.

Nothing tells the three from waiting in one picture of a job, so `Stalls` is shown one picture after
another and remembers since when each has not moved.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from penstock.checkpoint.handles import MAX_WATERMARK
from penstock.checkpoint.history import CheckpointStatus
from penstock.graph.execution_graph import ExecutionGraph, SubtaskId
from penstock.jobmanager.progress import Progress
from penstock.jobmanager.watermarks import explain_watermarks
from penstock.network.messages import SubtaskMetrics

_STANDS_MS = 5_000
"""After so long without moving something is worth a word."""


class Stalls:
    """Looks at a job again and again, and says what stands."""

    def __init__(self) -> None:
        self._since: dict[Any, tuple[Any, int, int]] = {}
        """How far something had come, since when, and how many records had been read then."""

    def look(self, graph: ExecutionGraph, progress: Progress, now_ms: int) -> dict[str, str]:
        """What stands now: a line for each of "event time", "source" and "checkpoint"."""
        metrics = progress.metrics
        read = sum(metrics[s].records_out for s in graph.subtasks() if _reads(graph, s, metrics))
        found = {
            "event time": self._event_time(graph, progress, read, now_ms),
            "source": self._source(graph, metrics, now_ms),
            "checkpoint": _checkpoint(graph, progress, now_ms),
        }
        return {what: line for what, line in found.items() if line is not None}

    def _stood(self, key: Any, value: Any, read: int, now_ms: int) -> tuple[int, int]:
        """For how long `value` has not changed, and how many records were read in that time."""
        known = self._since.get(key)
        if known is None or known[0] != value:
            known = self._since[key] = (value, now_ms, read)
        return now_ms - known[1], read - known[2]

    def _event_time(
        self, graph: ExecutionGraph, progress: Progress, read: int, now_ms: int
    ) -> str | None:
        waiting = []
        for found in explain_watermarks(graph, progress.metrics):
            if not found.is_origin or found.watermark == MAX_WATERMARK:
                continue
            key = ("watermark", found.operator, found.subtask, progress.attempt)
            stood_ms, arrived = self._stood(key, found.watermark, read, now_ms)
            if not found.idle:
                waiting.append((found.watermark, stood_ms, arrived, found))
        if not waiting:
            return None
        _, stood_ms, arrived, found = min(waiting, key=lambda each: each[:1])
        if stood_ms <= _STANDS_MS or arrived <= 0:
            return None
        return f"event time stands for {stood_ms // 1000} s: {found}"

    def _source(
        self, graph: ExecutionGraph, metrics: dict[SubtaskId, SubtaskMetrics], now_ms: int
    ) -> str | None:
        for subtask in graph.subtasks():
            if not _reads(graph, subtask, metrics):
                continue
            seen = metrics[subtask]
            stood_ms, _ = self._stood(("read", subtask), seen.records_out, 0, now_ms)
            held_ms, _ = self._stood(("held", subtask), seen.backpressured_ns, 0, now_ms)
            # A source that is held up has ever more of such time, and passes nothing on.
            if stood_ms > _STANDS_MS and held_ms < _STANDS_MS and seen.backpressured_ns:
                slow = _fullest(graph, metrics)
                return (
                    f"{_name(graph, subtask)} has passed no record on for {stood_ms // 1000} s: "
                    f"it waits for {slow}; look at what the function or the sink there waits for"
                )
        return None


def _checkpoint(graph: ExecutionGraph, progress: Progress, now_ms: int) -> str | None:
    for record in progress.checkpoints:
        stood_ms = now_ms - record.triggered_ms
        if record.status is not CheckpointStatus.IN_PROGRESS or stood_ms <= _STANDS_MS:
            continue
        missing = [subtask for subtask in graph.subtasks() if subtask not in record.subtasks]
        where = ", ".join(_name(graph, subtask) for subtask in missing[:1])
        others = f" and {len(missing) - 1} others" if len(missing) > 1 else ""
        held = f"it waits for {where}{others}" if missing else "it is being written"
        return (
            f"checkpoint {record.id} has been under way for {stood_ms // 1000} s: {held}; a slow "
            "function or sink keeps barriers waiting, unaligned checkpoints pass it by"
        )
    return None


def _reads(
    graph: ExecutionGraph, subtask: SubtaskId, metrics: dict[SubtaskId, SubtaskMetrics]
) -> bool:
    return subtask in metrics and not graph.input_channels(subtask)


def _fullest(graph: ExecutionGraph, metrics: dict[SubtaskId, SubtaskMetrics]) -> str:
    """The last subtask with records before it: those behind it have room."""
    full = [s for s in graph.subtasks() if s in metrics and metrics[s].queued > 0]
    last = max(full, key=lambda s: (s.vertex, metrics[s].queued), default=None)
    return "its own chain" if last is None else _name(graph, last)


def _name(graph: ExecutionGraph, subtask: SubtaskId) -> str:
    vertex = graph.job.vertex(subtask.vertex)
    return f"{vertex.name} ({subtask.index + 1}/{vertex.parallelism})"


class StallLog:
    """Says each stall once: when it begins."""

    def __init__(self) -> None:
        self._stalls = Stalls()
        self._said: set[str] = set()

    def news(self, graph: ExecutionGraph, progress: Progress, now_ms: int) -> Iterator[str]:
        """The lines of what stands now and did not before."""
        found = self._stalls.look(graph, progress, now_ms)
        yield from (line for what, line in found.items() if what not in self._said)
        self._said = set(found)
