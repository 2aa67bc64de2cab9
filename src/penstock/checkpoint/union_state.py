"""Union list state: on restore every subtask of an operator is given what all of them had."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from penstock.checkpoint.handles import OperatorSnapshot, SegmentHandle, SubtaskSnapshot
from penstock.common.keys import UNION_GROUP


def union_handles(parts: Sequence[OperatorSnapshot]) -> tuple[SegmentHandle, ...]:
    """The segments of union state of all subtasks of one operator, in their order."""
    handles = (handle for part in parts for handle in part.segments)
    return tuple(handle for handle in handles if handle.last_group == UNION_GROUP)


def with_union(part: OperatorSnapshot, handles: tuple[SegmentHandle, ...]) -> OperatorSnapshot:
    """One subtask's part, with the union state of all in the place of its own."""
    own = tuple(handle for handle in part.segments if handle.last_group != UNION_GROUP)
    return replace(part, segments=own + handles)


def share_union_state(subtasks: Sequence[SubtaskSnapshot]) -> list[SubtaskSnapshot]:
    """The subtasks of one vertex as they are to be restored."""
    uids = {uid for subtask in subtasks for uid in subtask.operators}
    unions = {
        uid: union_handles([s.operators[uid] for s in subtasks if uid in s.operators])
        for uid in uids
    }
    return [
        replace(
            subtask,
            operators={
                uid: with_union(part, unions[uid]) for uid, part in subtask.operators.items()
            },
        )
        for subtask in subtasks
    ]
