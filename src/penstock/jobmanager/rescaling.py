"""From a checkpoint to what each subtask begins with, at whatever parallelism.

Operators are found by uid, wherever they were chained before. With as many subtasks as before each
gets its own part back. Otherwise keyed state goes by key groups, operator state to everyone (who
picks its own: `penstock.state.redistribution`), splits of sources are dealt out in turn, and a
watermark is the minimum of the old ones. What was under way in channels goes back to them, which
`penstock.jobmanager.in_flight` has found to be there. All of it is a function of plain data.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from penstock.checkpoint.handles import (
    MAX_WATERMARK,
    MIN_WATERMARK,
    OperatorSnapshot,
    SubtaskSnapshot,
)
from penstock.checkpoint.metadata import CheckpointMetadata, VertexSnapshot
from penstock.checkpoint.union_state import union_handles, with_union
from penstock.common.keys import groups_of_subtask
from penstock.common.plain import Plain
from penstock.graph.execution_graph import ExecutionGraph, SubtaskId
from penstock.graph.job_graph import JobVertex
from penstock.jobmanager.in_flight import in_flight_of
from penstock.jobmanager.matching import SavedOperator, saved_operators


def restored_subtasks(
    graph: ExecutionGraph, metadata: CheckpointMetadata
) -> dict[SubtaskId, SubtaskSnapshot]:
    """What every subtask begins with; one of which the checkpoint knows nothing is left out."""
    saved = saved_operators(metadata)
    restored: dict[SubtaskId, SubtaskSnapshot] = {}
    for vertex in graph.job.vertices:
        found = [saved[node.uid] for node in vertex.nodes if node.uid in saved]
        for index in range(vertex.parallelism if found else 0):
            subtask = SubtaskId(vertex.id, index)
            # Whoever has finished reads nothing, so nobody may be left who writes to it.
            unfed = all(
                restored[sender].finished if sender in restored else False
                for sender in map(graph.sender_of, graph.input_channels(subtask))
            )
            over = vertex.uid in saved and all(_finished(o, index, vertex) for o in found)
            if unfed and over:
                ended = _ended_splits(found, index, vertex)
                restored[subtask] = SubtaskSnapshot(True, MAX_WATERMARK, ended)
            else:
                under_way = in_flight_of(graph, metadata, subtask)
                restored[subtask] = replace(_subtask(found, index, vertex), in_flight=under_way)
    return restored


def _finished(operator: SavedOperator, index: int, vertex: JobVertex) -> bool:
    return all(s.finished for s in _predecessors(operator.vertex, index, vertex.parallelism))


def _predecessors(old: VertexSnapshot, index: int, parallelism: int) -> list[SubtaskSnapshot]:
    """The old subtasks whose work the new one goes on with."""
    return [old.subtasks[index]] if old.parallelism == parallelism else list(old.subtasks)


def _subtask(found: list[SavedOperator], index: int, vertex: JobVertex) -> SubtaskSnapshot:
    before = [
        subtask
        for operator in found
        for subtask in _predecessors(operator.vertex, index, vertex.parallelism)
        # One that had finished left no state, and its input is over: there is nothing to add.
        if not subtask.finished
    ]
    watermark = min((subtask.watermark for subtask in before), default=MIN_WATERMARK)
    return SubtaskSnapshot(
        False,
        # The end of time comes again from whoever has ended. After a drain nobody has: time
        # begins anew.
        MIN_WATERMARK if watermark == MAX_WATERMARK else watermark,
        {operator.uid: _operator(operator, index, vertex) for operator in found},
        clocks=_clocks(clock for subtask in before for clock in subtask.clocks),
    )


def _ended_splits(
    found: list[SavedOperator], index: int, vertex: JobVertex
) -> dict[str, OperatorSnapshot]:
    """Splits of a source that is over, whose ends somebody has yet to hear of."""
    splits = {o.uid: _operator(o, index, vertex).splits for o in found}
    return {uid: OperatorSnapshot(splits=ended) for uid, ended in splits.items() if ended}


def _operator(operator: SavedOperator, index: int, vertex: JobVertex) -> OperatorSnapshot:
    parts = operator.parts
    if len(parts) == vertex.parallelism:
        return with_union(parts[index], union_handles(parts))
    groups = groups_of_subtask(index, vertex.max_parallelism, vertex.parallelism)
    segments = tuple(
        handle
        for part in parts
        for handle in part.segments
        if handle.first_group < 0 or handle.overlaps(groups)
    )
    splits = [split for part in parts for split in part.splits]
    return OperatorSnapshot(segments, tuple(splits[index :: vertex.parallelism]))


def _clocks(clocks: Iterable[Plain]) -> tuple[Plain, ...]:
    """How far every split has come. Where splits are not told apart, all wait for the slowest."""
    slowest: dict[str, Plain] = {}
    for clock in clocks:
        split, latest = clock
        known = slowest.get(repr(split))
        if known is None or latest < known[1]:
            slowest[repr(split)] = [split, latest]
    return tuple(slowest.values())
