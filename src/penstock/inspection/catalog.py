"""What is in a savepoint or a checkpoint: operators, their states, the types of these, their sizes.

Types and sizes stand at the front of every segment, so nothing else of the state is read.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from penstock.checkpoint.handles import SegmentHandle
from penstock.checkpoint.savepoints import Snapshot, open_snapshot
from penstock.common.typeinfo import TypeInformation
from penstock.errors import CorruptCheckpointError, StateError
from penstock.jobmanager.matching import SavedOperator, saved_operators
from penstock.state.migration import NoMigration, migration
from penstock.state.schema import type_of
from penstock.state.segments import BlockPlace, read_index


@dataclass(frozen=True)
class StateInfo:
    """One state of one operator."""

    name: str
    kind: str
    """value, list, map, reducing, aggregating, timers, broadcast, operator-list, ..."""
    type_info: TypeInformation
    """The type of what is stored for a key, or of an element."""
    size: int
    """Bytes, of all versions that the files hold."""
    keyed: bool


@dataclass(frozen=True)
class OperatorInfo:
    """One operator."""

    uid: str
    name: str
    parallelism: int
    max_parallelism: int
    backend: str
    """The state backend that can read it; empty if any can."""
    states: tuple[StateInfo, ...] = ()

    def state(self, name: str) -> StateInfo:
        """The state of this name; StateError lists those that there are."""
        for state in self.states:
            if state.name == name:
                return state
        there = ", ".join(f"{state.name!r} ({state.kind})" for state in self.states)
        raise StateError(f"operator {self.uid!r} has no state {name!r}; it has {there or 'none'}")


@dataclass(frozen=True)
class Catalog:
    """A savepoint or a checkpoint, opened."""

    snapshot: Snapshot
    operators: dict[str, OperatorInfo] = field(default_factory=dict)
    """By uid, in the order of the program."""

    @staticmethod
    def open(path: str) -> Catalog:
        """CheckpointError if there is none at `path`."""
        snapshot = open_snapshot(path)
        saved = saved_operators(snapshot.metadata)
        return Catalog(snapshot, {uid: _operator(snapshot, op) for uid, op in saved.items()})

    def has_records_under_way(self) -> bool:
        """Whether it is an unaligned checkpoint: not all that it holds is state of operators."""
        vertices = self.snapshot.metadata.vertices.values()
        return any(subtask.in_flight for vertex in vertices for subtask in vertex.subtasks)

    def operator(self, uid: str) -> OperatorInfo:
        """The operator with this uid; StateError lists those that there are."""
        found = self.operators.get(uid)
        if found is None:
            there = ", ".join(f"{o.uid!r} ({o.name})" for o in self.operators.values())
            raise StateError(
                f"{self.snapshot.path} has no operator with uid {uid!r}; it has {there or 'none'}"
            )
        return found

    def saved(self, uid: str) -> SavedOperator:
        """The same, as the manifest has it."""
        return saved_operators(self.snapshot.metadata)[self.operator(uid).uid]


def index_of(snapshot: Snapshot, handle: SegmentHandle) -> tuple[str, list[BlockPlace]]:
    """The backend that a segment is for, and what is where in it."""
    store, path = snapshot.store, handle.path
    origin, places = read_index(lambda start, size: store.read_part(path, start, size))
    return origin.backend, places


def _operator(snapshot: Snapshot, saved: SavedOperator) -> OperatorInfo:
    backends: set[str] = set()
    found: dict[tuple[str, str], tuple[TypeInformation, int, bool]] = {}
    # By path: one file may be there for several subtasks.
    handles = {handle.path: handle for part in saved.parts for handle in part.segments}
    for handle in handles.values():
        if handle.file:
            # What it holds is described by the segment that came before it.
            for state in handle.states:
                if state not in found:
                    raise CorruptCheckpointError(
                        f"{handle.path} is said to hold {state[1]} state {state[0]!r}, of which "
                        "its database knows nothing: the manifest was altered"
                    )
                kind, size, keyed = found[state]
                found[state] = (kind, size + handle.size // len(handle.states), keyed)
            continue
        backend, places = index_of(snapshot, handle)
        backends.add(backend)
        for place in places:
            state, kind = (place.state, place.kind), type_of(place.schema)
            known, size, _ = found.get(state, (kind, 0, True))
            found[state] = (_common(known, kind), size + place.size, place.group >= 0)
    vertex = saved.vertex
    states = [
        StateInfo(name, state_kind, *found[name, state_kind]) for name, state_kind in sorted(found)
    ]
    return OperatorInfo(
        saved.uid,
        saved.name,
        vertex.parallelism,
        vertex.max_parallelism,
        next(iter(backends - {""}), ""),
        tuple(states),
    )


def _common(known: TypeInformation, other: TypeInformation) -> TypeInformation:
    """The newer of two types of one state: segments from before a migration may still be there."""
    if known == other:
        return known
    try:
        migration(known, other)
    except NoMigration:
        return known
    return other
