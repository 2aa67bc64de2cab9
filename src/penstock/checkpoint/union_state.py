"""Union list state: on restore every subtask of an operator is given what all of them had."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from penstock.checkpoint.handles import OperatorSnapshot, SegmentHandle
from penstock.common.keys import UNION_GROUP


def union_handles(parts: Sequence[OperatorSnapshot]) -> tuple[SegmentHandle, ...]:
    """The segments of union state of all subtasks of one operator, in their order."""
    handles = (handle for part in parts for handle in part.segments)
    return tuple(handle for handle in handles if handle.last_group == UNION_GROUP)


def with_union(part: OperatorSnapshot, handles: tuple[SegmentHandle, ...]) -> OperatorSnapshot:
    """One subtask's part, with the union state of all in the place of its own."""
    own = tuple(handle for handle in part.segments if handle.last_group != UNION_GROUP)
    return replace(part, segments=own + handles)
