"""Savepoints from DataFrames: a job begun with state from elsewhere, or a savepoint repaired."""

from __future__ import annotations

import os
import time
import uuid
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from penstock.checkpoint.handles import OperatorSnapshot, SubtaskSnapshot
from penstock.checkpoint.metadata import CheckpointMetadata, VertexSnapshot
from penstock.checkpoint.savepoints import SavepointLocation
from penstock.common.keys import DEFAULT_MAX_PARALLELISM
from penstock.common.typeinfo import TypeInformation, Types
from penstock.errors import CheckpointError, InvalidParallelismError, ProgramError
from penstock.inspection.catalog import Catalog
from penstock.inspection.shapes import EVENT_TIMERS, PROCESSING_TIMERS, REDUCED
from penstock.spark.frames import current_session, run_on_frame, run_tasks, types_of
from penstock.state.broadcast import KIND as BROADCAST
from penstock.state.descriptors import (
    ListStateDescriptor,
    MapStateDescriptor,
    StateDescriptor,
    refuse_ttl,
)
from penstock.state.operator_state import LIST, UNION
from penstock.state_api.writing import (
    BySubtask,
    CopyPart,
    NewState,
    Target,
    ToOne,
    WriteKeyed,
    Written,
    write_unkeyed,
)

if TYPE_CHECKING:
    from penstock.spark.frames import DataFrame

_PARALLELISM = 4


@dataclass
class _Changes:
    """What becomes of one operator."""

    without: set[tuple[str, bool]] = field(default_factory=set)
    """Names of states that go, each with whether the state is keyed."""
    new: list[Callable[[Target], Written]] = field(default_factory=list)


class SavepointWriter:
    """A savepoint in the making; made by `new_savepoint` or `from_existing_savepoint`.

    Its methods say what it is to hold, and return it; `write` writes it.
    """

    def __init__(self, base: Catalog | None, max_parallelism: int, parallelism: int) -> None:
        if not 1 <= parallelism <= max_parallelism:
            raise InvalidParallelismError(
                f"parallelism {parallelism} of a savepoint must lie between 1 and its max "
                f"parallelism, {max_parallelism}"
            )
        self._base = base
        self._max_parallelism = max_parallelism
        self._parallelism = parallelism
        self._changes: dict[str, _Changes] = {}
        self._removed: set[str] = set()

    @staticmethod
    def new_savepoint(
        max_parallelism: int = DEFAULT_MAX_PARALLELISM, parallelism: int = _PARALLELISM
    ) -> SavepointWriter:
        """One that holds nothing yet.

        `max_parallelism` must be that of the job that begins with it. `parallelism` is into how
        many files the state of an operator is cut, and how many Spark tasks write it: the job
        may have any other.
        """
        return SavepointWriter(None, max_parallelism, parallelism)

    @staticmethod
    def from_existing_savepoint(
        path: str,
        max_parallelism: int = DEFAULT_MAX_PARALLELISM,
        parallelism: int = _PARALLELISM,
    ) -> SavepointWriter:
        """One that holds what a savepoint or a retained checkpoint holds, which stays as it is.

        What it has of sources and of output goes with it. The numbers are for operators that
        are added. CheckpointError for an unaligned checkpoint with records under way.
        """
        catalog = Catalog.open(path)
        if catalog.has_records_under_way():
            raise CheckpointError(
                f"{path} is an unaligned checkpoint with records under way, and those are no "
                "operator's state: take a savepoint of the job, and begin with that"
            )
        return SavepointWriter(catalog, max_parallelism, parallelism)

    def with_keyed_state(
        self,
        uid: str,
        descriptor: StateDescriptor,
        frame: DataFrame,
        key_type: TypeInformation | None = None,
    ) -> SavepointWriter:
        """Give an operator this state, in the place of what it has under that name.

        The columns are key and value, a row for each key, as `SavepointReader.state` has them. A
        row whose value is null is a key without state. `key_type` says what keys are where the
        column leaves that open. For a running reduction the name of the state is `__reduced`.
        """
        name = descriptor.name
        if name.startswith("__") and (name, descriptor.stored_kind()) != (REDUCED, "value"):
            raise ProgramError(
                f"state {name!r} of {uid!r} cannot be written: of the states that the engine "
                f"itself keeps only timers can (with_timers), and {REDUCED!r} as value state"
            )
        declared = descriptor.stored_type()
        # Nobody declares the engine's own, so a type would bind a program that knows of none.
        stored = Types.PICKLED_BYTE_ARRAY() if name == REDUCED else declared
        state = NewState(name, descriptor.stored_kind(), declared, stored)
        return self._keyed(uid, state, frame, key_type)

    def with_timers(
        self,
        uid: str,
        frame: DataFrame,
        key_type: TypeInformation | None = None,
        *,
        processing_time: bool = False,
    ) -> SavepointWriter:
        """Give an operator these timers, of event time or of processing time, and no others.

        The columns are key and value, an array of timestamps in milliseconds.
        """
        name = PROCESSING_TIMERS if processing_time else EVENT_TIMERS
        pickled = Types.PICKLED_BYTE_ARRAY()
        return self._keyed(uid, NewState(name, "timers", pickled, pickled), frame, key_type)

    def _keyed(
        self, uid: str, state: NewState, frame: DataFrame, key_type: TypeInformation | None
    ) -> SavepointWriter:
        there = types_of(frame, ["key", "value"], f"keyed state {state.name!r}")
        columns = [("key", key_type or there["key"]), ("value", state.shown)]

        def write(target: Target) -> Written:
            work = WriteKeyed(target, state)
            session, parts = current_session(), target.parallelism
            return _all(run_on_frame(session, frame, columns, BySubtask(target), parts, work))

        return self._with(uid, state.name, True, write)

    def with_list_state(
        self, uid: str, descriptor: ListStateDescriptor, frame: DataFrame
    ) -> SavepointWriter:
        """Give an operator this list, dealt out to its subtasks.

        The column is value, or as it is read: subtask, position and value.
        """
        return self._unkeyed(uid, descriptor, LIST, frame, None)

    def with_union_list_state(
        self, uid: str, descriptor: ListStateDescriptor, frame: DataFrame
    ) -> SavepointWriter:
        """Give an operator this list, of which every subtask is given all."""
        return self._unkeyed(uid, descriptor, UNION, frame, None)

    def with_broadcast_state(
        self,
        uid: str,
        descriptor: MapStateDescriptor,
        frame: DataFrame,
        key_type: TypeInformation | None = None,
    ) -> SavepointWriter:
        """Give an operator this broadcast state: the columns are key and value."""
        return self._unkeyed(uid, descriptor, BROADCAST, frame, key_type)

    def _unkeyed(
        self,
        uid: str,
        descriptor: StateDescriptor,
        kind: str,
        frame: DataFrame,
        key_type: TypeInformation | None,
    ) -> SavepointWriter:
        refuse_ttl(descriptor, "operator state")
        declared = descriptor.type_info
        state = NewState(descriptor.name, kind, declared, declared)
        names = ["value"]
        if kind == BROADCAST:
            names = ["key", "value"]
        elif {"subtask", "position"} <= set(frame.columns):
            names = ["subtask", "position", "value"]
        there = types_of(frame, names, f"{kind} state {state.name!r}")
        if key_type is not None:
            there["key"] = key_type
        columns = [(name, state.shown if name == "value" else there[name]) for name in names]

        def write(target: Target) -> Written:
            work = write_unkeyed(target, state)
            return _all(run_on_frame(current_session(), frame, columns, ToOne(), 1, work))

        return self._with(uid, state.name, False, write)

    def _with(
        self, uid: str, name: str, keyed: bool, write: Callable[[Target], Written]
    ) -> SavepointWriter:
        changes = self._changes.setdefault(uid, _Changes())
        if (name, keyed) in changes.without:
            raise ProgramError(f"state {name!r} of {uid!r} is given twice, or removed and given")
        changes.without.add((name, keyed))
        changes.new.append(write)
        return self

    def remove_state(self, uid: str, name: str) -> SavepointWriter:
        """Leave out a state; StateError if there is none."""
        state = self._existing().operator(uid).state(name)
        self._changes.setdefault(uid, _Changes()).without.add((name, state.keyed))
        return self

    def remove_operator(self, uid: str) -> SavepointWriter:
        """Leave out an operator: its state, its positions, its output that is not committed."""
        self._removed.add(self._existing().operator(uid).uid)
        return self

    def _existing(self) -> Catalog:
        if self._base is None:
            raise ProgramError("a new savepoint has nothing that could be removed")
        return self._base

    # --- writing ------------------------------------------------------------------------------

    def write(self, directory: str) -> str:
        """Write the savepoint into a new folder of `directory`; its path, for `-s`.

        Executors write the state there, so all of them must reach it. If that fails there is no
        savepoint.
        """
        metadata = self._metadata()
        name = f"savepoint-{metadata.job_id[:6]}-{uuid.uuid4().hex[:12]}"
        # Executors have working directories of their own.
        where = directory if "://" in directory else os.path.abspath(directory)
        location = SavepointLocation(where, name)
        try:
            complete = location.complete(self._written(metadata, location))
        except BaseException:
            location.abandon()
            raise
        if not complete:
            raise CheckpointError(f"{location.path} could not be written: it exists")
        return location.path

    def _metadata(self) -> CheckpointMetadata:
        """The manifest before any state is written, without what was removed."""
        now = time.time_ns() // 1_000_000
        if self._base is None:
            metadata = CheckpointMetadata(uuid.uuid4().hex, 1, 0, now, {}, {}, {})
        else:
            metadata = replace(self._base.snapshot.metadata, timestamp=now, restored_from=None)
        vertices = dict(metadata.vertices)
        for head, vertex in metadata.vertices.items():
            operators = {u: n for u, n in vertex.operators.items() if u not in self._removed}
            vertices[head] = replace(vertex, operators=operators)
            if not operators:
                del vertices[head]
        known = {uid for vertex in vertices.values() for uid in vertex.operators}
        for uid in self._changes:
            if uid not in known and self._changes[uid].new:
                vertices[uid] = self._new_vertex(uid)
        return replace(
            metadata,
            vertices=vertices,
            enumerators=_without(metadata.enumerators, self._removed),
            committables=_without(metadata.committables, self._removed),
        )

    def _new_vertex(self, uid: str) -> VertexSnapshot:
        subtasks = tuple(SubtaskSnapshot(False) for _ in range(self._parallelism))
        return VertexSnapshot(uid, self._parallelism, self._max_parallelism, subtasks, {uid: uid})

    def _written(
        self, metadata: CheckpointMetadata, location: SavepointLocation
    ) -> CheckpointMetadata:
        """Write all state; the manifest with what was written."""
        copies: list[CopyPart] = []
        targets: dict[str, Target] = {}
        for vertex in metadata.vertices.values():
            for uid in vertex.operators:
                size = (vertex.parallelism, vertex.max_parallelism)
                targets[uid] = Target(location.store(), uid, *size)
                copies += self._copies(uid, vertex, targets[uid])
        written: dict[str, Written] = {uid: [] for uid in targets}
        for copy, handles in zip(copies, run_tasks(current_session(), copies), strict=True):
            written[copy.target.uid] += handles
        for uid, changes in self._changes.items():
            for write in changes.new:
                written[uid] += write(targets[uid])
        vertices = {
            head: self._with_segments(vertex, written) for head, vertex in metadata.vertices.items()
        }
        return replace(metadata, vertices=vertices)

    def _copies(self, uid: str, vertex: VertexSnapshot, target: Target) -> list[CopyPart]:
        if self._base is None:
            return []
        without = frozenset(self._changes[uid].without if uid in self._changes else ())
        store = self._base.snapshot.store
        parts = [subtask.operators.get(uid, OperatorSnapshot()) for subtask in vertex.subtasks]
        return [
            CopyPart(store, part.segments, target, index, without)
            for index, part in enumerate(parts)
            if part.segments
        ]

    def _with_segments(self, vertex: VertexSnapshot, written: dict[str, Written]) -> VertexSnapshot:
        # One that had finished has no state; one that is given some has work to do.
        revived = any(self._changes[u].new for u in vertex.operators if u in self._changes)
        subtasks = []
        for index, subtask in enumerate(vertex.subtasks):
            operators = {}
            for uid in vertex.operators:
                segments = tuple(h for at, h in written.get(uid, ()) if at == index)
                old = subtask.operators.get(uid)
                if old is not None or segments:
                    operators[uid] = replace(old or OperatorSnapshot(), segments=segments)
            finished = subtask.finished and not revived
            subtasks.append(replace(subtask, finished=finished, operators=operators))
        return replace(vertex, subtasks=tuple(subtasks))


def _without(values: Any, removed: set[str]) -> dict[str, Any]:
    return {uid: value for uid, value in values.items() if uid not in removed}


def _all(results: Iterable[Written]) -> Written:
    return [handle for written in results for handle in written]
