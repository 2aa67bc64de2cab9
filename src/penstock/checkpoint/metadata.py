"""The manifest of a checkpoint: one JSON file with a checksum over its content.

The checkpoint exists when this file does. It names every piece of state, every source position and
all committables that are not yet known to be committed. A checkpoint is abandoned by creating a
tombstone under the same name: whoever creates the file first decides, for ever.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from penstock.checkpoint.checked import listed, mapped, number, text
from penstock.checkpoint.handles import OperatorSnapshot, SegmentHandle, SubtaskSnapshot
from penstock.checkpoint.references import check_savepoint
from penstock.checkpoint.sealed import seal, unseal
from penstock.common import plain
from penstock.common.config_options import parse_job_id
from penstock.common.keys import MAX_PARALLELISM_LIMIT
from penstock.common.plain import Plain
from penstock.errors import CorruptCheckpointError


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
    try:
        return None if content.get("abandoned") else _metadata(content)
    except (ValueError, TypeError, KeyError, AttributeError) as error:
        raise CorruptCheckpointError(
            f"{path} was altered, or Penstock did not write it: {_reason(error)}"
        ) from error


def _reason(error: Exception) -> str:
    return f"it lacks {error}" if isinstance(error, KeyError) else str(error)


def _metadata(content: Mapping[str, Any]) -> CheckpointMetadata:
    committables = plain.decode(content["committables"])
    restored_from = content["restored_from"]
    metadata = CheckpointMetadata(
        parse_job_id(text(content["job_id"])),
        number(content["checkpoint"], least=0),
        number(content["attempt"], least=0),
        number(content["timestamp"]),
        {uid: _vertex(vertex) for uid, vertex in content["vertices"].items()},
        mapped(plain.decode(content["enumerators"])),
        {uid: tuple(listed(values)) for uid, values in mapped(committables).items()},
        number(content["generation"], least=0),
        None if restored_from is None else text(restored_from),
    )
    foreign = (handle.path for handle in metadata.segments() if handle.foreign)
    check_savepoint(metadata.job_id, foreign)
    return metadata


def _vertex(vertex: Mapping[str, Any]) -> VertexSnapshot:
    return VertexSnapshot(
        text(vertex["name"]),
        number(vertex["parallelism"], least=1, most=MAX_PARALLELISM_LIMIT),
        number(vertex["max_parallelism"], least=1, most=MAX_PARALLELISM_LIMIT),
        tuple(map(SubtaskSnapshot.from_json, listed(vertex["subtasks"]))),
        {uid: text(name) for uid, name in vertex["operators"].items()},
    )
