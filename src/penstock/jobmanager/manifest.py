"""From the acknowledgements of all subtasks to the manifest of a checkpoint."""

from __future__ import annotations

from collections.abc import Mapping

from penstock.checkpoint.handles import SubtaskSnapshot
from penstock.checkpoint.metadata import CheckpointMetadata, VertexSnapshot
from penstock.common.plain import Plain
from penstock.graph.execution_graph import SubtaskId
from penstock.jobmanager.committing import Committables, merge
from penstock.jobmanager.job import Job


def manifest(
    job: Job,
    checkpoint: int,
    snapshots: Mapping[SubtaskId, SubtaskSnapshot],
    attempt: int,
    now_ms: int,
    enumerators: Mapping[str, Plain],
    unconfirmed: Committables,
    began_with: str | None,
) -> CheckpointMetadata:
    """The manifest of a checkpoint of which every subtask has sent its part.

    `unconfirmed` is what earlier checkpoints cover and nobody is known to have committed,
    `began_with` the path that the job once began with.
    """
    vertices = {
        vertex.uid: VertexSnapshot(
            vertex.name,
            vertex.parallelism,
            vertex.max_parallelism,
            tuple(snapshots[SubtaskId(vertex.id, i)] for i in range(vertex.parallelism)),
            {node.uid: node.name for node in vertex.nodes},
        )
        for vertex in job.graph.job.vertices
    }
    prepared = [
        {uid: operator.committables}
        for snapshot in snapshots.values()
        for uid, operator in snapshot.operators.items()
    ]
    committables = merge([unconfirmed, *prepared])
    return CheckpointMetadata(
        job.id,
        checkpoint,
        attempt,
        now_ms,
        vertices,
        enumerators,
        committables,
        restored_from=began_with,
    )
