"""Channel state of an unaligned checkpoint: for which program it is, and who reads it.

Records under way belong to one channel of one exchange. With other subtasks or another graph there
is no such channel, so the checkpoint is refused, and the way out is named.
"""

from __future__ import annotations

from penstock.checkpoint.handles import SegmentHandle
from penstock.checkpoint.metadata import CheckpointMetadata
from penstock.graph.edge_names import edge_names
from penstock.graph.execution_graph import ExecutionGraph, SubtaskId
from penstock.graph.job_graph import JobGraph

WAY_OUT = (
    "start the program as it was and take a savepoint, or start it as it was with "
    "execution.checkpointing.unaligned.enabled off and wait for a checkpoint"
)


def in_flight_problem(job: JobGraph, metadata: CheckpointMetadata) -> str | None:
    """Why the records under way in the checkpoint have no place in the program; None if they do."""
    subtasks = [s for vertex in metadata.vertices.values() for s in vertex.subtasks]
    handles = [handle for subtask in subtasks for handle in subtask.in_flight]
    if not handles:
        return None
    difference = _difference(job, metadata, {name for h in handles for name, _ in h.states})
    if difference is None:
        return None
    return f"it is unaligned, with records under way, and {difference}; {WAY_OUT}"


def _difference(job: JobGraph, metadata: CheckpointMetadata, edges: set[str]) -> str | None:
    """What has changed between the checkpoint's graph and the program's."""
    vertices = {vertex.uid: vertex for vertex in job.vertices}
    for uid, saved in metadata.vertices.items():
        vertex = vertices.get(uid)
        if vertex is None:
            return f"the program has no chain that begins with uid {uid} ({saved.name})"
        if vertex.parallelism != saved.parallelism:
            return f"{saved.name} had parallelism {saved.parallelism}, and has {vertex.parallelism}"
        if {node.uid for node in vertex.nodes} != set(saved.operators):
            return f"the chain {saved.name} is now {vertex.name}"
    for uid, vertex in vertices.items():
        if uid not in metadata.vertices:
            return f"the program has a chain that it does not know: {vertex.name} (uid {uid})"
    for name in sorted(edges - set(edge_names(job).values())):
        return f"the program has no exchange {name}"
    return None


def in_flight_of(
    graph: ExecutionGraph, metadata: CheckpointMetadata, subtask: SubtaskId
) -> tuple[SegmentHandle, ...]:
    """Where `subtask` finds what was under way to it: its own segment, then its senders'."""
    names = edge_names(graph.job)
    found = list(_handles(graph, metadata, subtask))
    for channel in graph.input_channels(subtask):
        for handle in _handles(graph, metadata, graph.sender_of(channel)):
            holds = any(name == names[channel.edge] for name, _ in handle.states)
            if holds and handle not in found:
                found.append(handle)
    return tuple(found)


def _handles(
    graph: ExecutionGraph, metadata: CheckpointMetadata, subtask: SubtaskId
) -> tuple[SegmentHandle, ...]:
    vertex = graph.job.vertex(subtask.vertex)
    saved = metadata.vertices.get(vertex.uid)
    if saved is None or saved.parallelism != vertex.parallelism:
        # Of another layout: `in_flight_problem` has found that nothing was under way.
        return ()
    return saved.subtasks[subtask.index].in_flight
