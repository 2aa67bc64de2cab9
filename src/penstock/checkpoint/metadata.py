"""The manifest of a checkpoint: one JSON file with a checksum over its content.

The checkpoint exists when this file does. It names every piece of state, every source position and
all committables that are not yet known to be committed. A checkpoint is abandoned by creating a
tombstone under the same name: whoever creates the file first decides, for ever.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from penstock.checkpoint.handles import OperatorSnapshot, SegmentHandle, SubtaskSnapshot
from penstock.checkpoint.sealed import seal, unseal
from penstock.common import plain
from penstock.common.plain import Plain


@dataclass(frozen=True)
class VertexSnapshot:
    """All subtasks of one vertex; found again by the uid of its head."""

    name: str
    parallelism: int
    max_parallelism: int
    subtasks: tuple[SubtaskSnapshot, ...]
    operators: Mapping[str, str] = field(default_factory=dict)
    """The name of every operator of the chain, by uid, finished or not."""

    def finished(self) -> bool:
        """Whether nothing of it is left to run."""
        return all(subtask.finished for subtask in self.subtasks)


@dataclass(frozen=True)
class CheckpointMetadata:
    """Everything needed to continue from a checkpoint."""

    job_id: str
    checkpoint: int
    attempt: int
    timestamp: int
    vertices: Mapping[str, VertexSnapshot]
    enumerators: Mapping[str, Plain]
    committables: Mapping[str, tuple[Plain, ...]]
    generation: int = 0
    """Of the driver that completed it; see `penstock.checkpoint.generations`."""
    restored_from: str | None = None
    """The path that the job once began with, of which its first checkpoint is a copy."""

    def segments(self) -> list[SegmentHandle]:
        return [
            handle
            for vertex in self.vertices.values()
            for subtask in vertex.subtasks
            for handle in subtask.segments()
        ]

    def segment_paths(self) -> frozenset[str]:
        """The segments in the directory of the checkpoint's own job."""
        return frozenset(handle.path for handle in self.segments() if not handle.foreign)

    def with_paths(self, paths: Mapping[str, str]) -> CheckpointMetadata:
        """The same with every segment at the place that `paths` has for it."""

        def moved(handles: tuple[SegmentHandle, ...]) -> tuple[SegmentHandle, ...]:
            return tuple(replace(handle, path=paths[handle.path]) for handle in handles)

        def operator(old: OperatorSnapshot) -> OperatorSnapshot:
            return replace(old, segments=moved(old.segments))

        def subtask(old: SubtaskSnapshot) -> SubtaskSnapshot:
            operators = {uid: operator(part) for uid, part in old.operators.items()}
            return replace(old, operators=operators, in_flight=moved(old.in_flight))

        vertices = {
            uid: replace(vertex, subtasks=tuple(map(subtask, vertex.subtasks)))
            for uid, vertex in self.vertices.items()
        }
        return replace(self, vertices=vertices)

    def is_final(self) -> bool:
        """Whether every subtask was finished: nothing is left to run."""
        return all(vertex.finished() for vertex in self.vertices.values())


def encode_metadata(metadata: CheckpointMetadata) -> bytes:
    content = {
        "job_id": metadata.job_id,
        "checkpoint": metadata.checkpoint,
        "attempt": metadata.attempt,
        "generation": metadata.generation,
        "restored_from": metadata.restored_from,
        "timestamp": metadata.timestamp,
        "vertices": {
            uid: {
                "name": vertex.name,
                "parallelism": vertex.parallelism,
                "max_parallelism": vertex.max_parallelism,
                "operators": dict(vertex.operators),
                "subtasks": [subtask.to_json() for subtask in vertex.subtasks],
            }
            for uid, vertex in metadata.vertices.items()
        },
        "enumerators": plain.encode(dict(metadata.enumerators), "an enumerator's state"),
        "committables": plain.encode(dict(metadata.committables), "a committable"),
    }
    return seal(content)


def encode_tombstone(checkpoint: int) -> bytes:
    return seal({"checkpoint": checkpoint, "abandoned": True})


def decode_metadata(data: bytes, path: str) -> CheckpointMetadata | None:
    """The checkpoint, or None for a tombstone; CorruptCheckpointError for anything damaged."""
    content = unseal(data, path)
    if content.get("abandoned"):
        return None
    vertices = {
        uid: VertexSnapshot(
            vertex["name"],
            vertex["parallelism"],
            vertex["max_parallelism"],
            tuple(SubtaskSnapshot.from_json(subtask) for subtask in vertex["subtasks"]),
            vertex["operators"],
        )
        for uid, vertex in content["vertices"].items()
    }
    committables = plain.decode(content["committables"])
    return CheckpointMetadata(
        content["job_id"],
        content["checkpoint"],
        content["attempt"],
        content["timestamp"],
        vertices,
        plain.decode(content["enumerators"]),
        {uid: tuple(values) for uid, values in committables.items()},
        content["generation"],
        content["restored_from"],
    )
