"""Writing segments of a savepoint: tasks for executors, each of which gives handles back.

Whatever wrote the state before, what these write is canonical: whole, without removals, in the
key-group ranges of its subtasks, and for any state backend.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

from penstock.checkpoint.handles import SegmentHandle
from penstock.checkpoint.parts import keyed_files
from penstock.checkpoint.segment_names import written_for
from penstock.checkpoint.segment_writing import store_segment
from penstock.checkpoint.store import CheckpointStore
from penstock.common.keys import (
    NO_GROUP,
    UNION_GROUP,
    groups_of_subtask,
    key_group,
    subtask_of_group,
)
from penstock.common.spool import Spool
from penstock.common.typeinfo import TypeInformation
from penstock.common.typeinfo.base import shorten
from penstock.errors import StateError
from penstock.inspection.shapes import shape_of
from penstock.state.broadcast import KIND as BROADCAST
from penstock.state.capture import TableCapture, encode_block
from penstock.state.compaction import Merge, Merging
from penstock.state.keyed_parts import keyed_parts
from penstock.state.operator_state import UNION
from penstock.state.schema import schema_of
from penstock.state.segments import (
    GroupBlock,
    Origin,
    decode_segment,
    origin_of,
    segment_parts,
)

Written = list[tuple[int, SegmentHandle]]
"""Segments, each with the subtask that it is for."""


@dataclass(frozen=True)
class Target:
    """Where the segments of one operator go."""

    store: CheckpointStore
    uid: str
    parallelism: int
    max_parallelism: int

    def write(self, blocks: Sequence[GroupBlock], origin: Origin, groups: range) -> SegmentHandle:
        # A task may run twice, so a name must not come again.
        name = written_for(self.uid, origin.subtask)
        states = [(block.state, block.kind) for block in blocks]
        return store_segment(self.store, name, segment_parts(blocks, origin), groups, states)

    def groups(self, subtask: int) -> range:
        return groups_of_subtask(subtask, self.max_parallelism, self.parallelism)

    def origin(self, subtask: int) -> Origin:
        return Origin(subtask, self.parallelism)


@dataclass(frozen=True)
class CopyPart:
    """Copies what one subtask has of an operator, without the states that are to go."""

    source: CheckpointStore
    handles: tuple[SegmentHandle, ...]
    target: Target
    subtask: int
    without: frozenset[tuple[str, bool]]
    """Names, each with whether the state is keyed."""

    def __call__(self) -> Written:
        target, written = self.target, []
        groups = range(target.max_parallelism)
        parts = keyed_parts(keyed_files(self.handles, self.source, groups))
        merge = Merge([(b for part in parts for b in part.blocks(groups))], Merging.WHOLE)
        while merge.step(1 << 30):
            pass
        written += self._write(
            merge.blocks(), target.origin(self.subtask), target.groups(self.subtask)
        )
        for handle in self.handles:
            if handle.first_group < 0:
                data = self.source.read_whole(handle)
                origin = replace(origin_of(data), backend="")
                groups = range(handle.first_group, handle.last_group + 1)
                written += self._write(decode_segment(data, range(0)), origin, groups)
        return written

    def _write(self, blocks: Iterable[GroupBlock], origin: Origin, groups: range) -> Written:
        kept = [b for b in blocks if (b.state, b.group >= 0) not in self.without]
        if not kept:
            return []
        return [(self.subtask, self.target.write(kept, origin, groups))]


@dataclass(frozen=True)
class NewState:
    """What is to be written under a name."""

    name: str
    kind: str
    declared: TypeInformation
    """The type that the program declares for what is stored."""
    stored: TypeInformation
    """The type that it is written with."""

    @property
    def shown(self) -> TypeInformation:
        """The type of the column that it comes from."""
        return shape_of(self.kind, self.declared).type_info

    def stored_values(self, rows: Iterable[Sequence[Any]]) -> Iterator[tuple[Any, Any]]:
        """Keys and stored values; a row without a value is a key without state."""
        store = shape_of(self.kind, self.declared).store
        assert store is not None, "what can be looked at only is not written"
        for key, value in rows:
            if value is not None and not (isinstance(value, (list, dict)) and not value):
                yield key, store(value)


@dataclass(frozen=True)
class BySubtask:
    """To which subtask a key belongs."""

    target: Target

    def __call__(self, row: Sequence[Any]) -> int:
        most = self.target.max_parallelism
        return subtask_of_group(key_group(row[0], most), most, self.target.parallelism)


@dataclass(frozen=True)
class ToOne:
    """Everything to one place."""

    def __call__(self, row: Sequence[Any]) -> int:
        return 0


@dataclass(frozen=True)
class WriteKeyed:
    """Writes the keyed state of one subtask."""

    target: Target
    state: NewState

    def __call__(self, subtask: int, rows: Iterator[Sequence[Any]]) -> Written:
        state, target = self.state, self.target
        entries = _distinct(state, rows)
        if not entries:
            return []
        blocks = TableCapture.of(
            state.name,
            state.kind,
            state.stored,
            target.max_parallelism,
            list(entries),
            list(entries.values()),
            [],
            Spool(),
        ).blocks()
        handle = target.write(blocks, target.origin(subtask), target.groups(subtask))
        return [(subtask, handle)]


@dataclass(frozen=True)
class WriteBroadcast:
    """Writes broadcast state: one file, which every subtask reads."""

    target: Target
    state: NewState

    def __call__(self, subtask: int, rows: Iterator[Sequence[Any]]) -> Written:
        entries = _distinct(self.state, rows)
        handle = _write_unkeyed(self.target, self.state, 0, list(entries), list(entries.values()))
        return [(each, handle) for each in range(self.target.parallelism)]


@dataclass(frozen=True)
class WriteList:
    """Writes a list of operator state, its elements dealt out to the subtasks.

    Rows are values, or as they are read: subtask, position, value.
    """

    target: Target
    state: NewState

    def __call__(self, subtask: int, rows: Iterator[Sequence[Any]]) -> Written:
        target, state = self.target, self.state
        placed = [row if len(row) == 3 else (at, at, row[0]) for at, row in enumerate(rows)]
        placed.sort(key=lambda row: (row[0], row[1]))
        if state.kind == UNION:
            elements = [value for _, _, value in placed]
            return [(0, _write_unkeyed(target, state, 0, range(len(elements)), elements))]
        parts: list[list[Any]] = [[] for _ in range(target.parallelism)]
        for place, _, value in placed:
            parts[place % target.parallelism].append(value)
        return [
            (each, _write_unkeyed(target, state, each, range(len(part)), part))
            for each, part in enumerate(parts)
        ]


def _distinct(state: NewState, rows: Iterator[Sequence[Any]]) -> dict[Any, Any]:
    entries: dict[Any, Any] = {}
    for key, value in state.stored_values(rows):
        if key in entries:
            raise StateError(
                f"state {state.name!r} of key {shorten(key)} is in the DataFrame twice"
            )
        entries[key] = value
    return entries


def _write_unkeyed(
    target: Target, state: NewState, subtask: int, keys: Sequence[Any], values: list[Any]
) -> SegmentHandle:
    group = UNION_GROUP if state.kind == UNION else NO_GROUP
    payload = encode_block(state.name, state.stored, list(keys), values)
    block = GroupBlock(state.name, state.kind, group, [payload], schema_of(state.stored))
    return target.write([block], target.origin(subtask), range(group, group + 1))


def write_unkeyed(target: Target, state: NewState) -> WriteBroadcast | WriteList:
    """What writes operator state of this kind."""
    return WriteBroadcast(target, state) if state.kind == BROADCAST else WriteList(target, state)
