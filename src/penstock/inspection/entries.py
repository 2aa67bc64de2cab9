"""Reading state out of segments: pure tasks, for an executor or for a command line."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from penstock.checkpoint.handles import SegmentHandle
from penstock.checkpoint.parts import keyed_files
from penstock.checkpoint.store import CheckpointStore
from penstock.common.typeinfo import TypeInformation
from penstock.errors import PenstockError, StateError
from penstock.inspection.catalog import Catalog, StateInfo
from penstock.state.columns import unpickled
from penstock.state.entries import UNREADABLE, decode_entries, unreadable
from penstock.state.keyed_parts import keyed_parts
from penstock.state.migration import migration_of_state
from penstock.state.pickled import Pickled, described
from penstock.state.schema import needs_pickle, schema_of, type_of
from penstock.state.segments import GroupBlock, decode_segment, origin_of


@dataclass(frozen=True)
class StatePart:
    """What one subtask had of one state, and how to read it."""

    store: CheckpointStore
    handles: tuple[SegmentHandle, ...]
    """Oldest first."""
    state: str
    type_info: TypeInformation
    """The type to give values in."""
    groups: range
    trust: bool
    """Whether what is pickled is unpickled, which runs whatever it says."""

    def entries(self) -> Iterator[tuple[Any, Any]]:
        """Keys with their values, key group after key group."""
        blocks: dict[int, list[GroupBlock]] = {}
        for block in self.blocks():
            blocks.setdefault(block.group, []).append(block)
        for group in sorted(blocks):
            entries: dict[Any, Any] = {}
            for block in blocks.pop(group):
                keys, values, removed = self._decoded(block)
                entries.update(zip(keys, values, strict=True))
                for key in removed:
                    entries.pop(key, None)
            yield from entries.items()

    def blocks(self) -> Iterator[GroupBlock]:
        """The same as it is stored, oldest first."""
        for part in keyed_parts(keyed_files(self.handles, self.store, self.groups)):
            tables = part.database.tables if part.database is not None else ()
            if not self.trust and self.state in [table.state for table in tables]:
                raise _untrusted(
                    self.state, "is in files of RocksDB, with entries that are pickled"
                )
            yield from part.blocks(self.groups, self.state)

    def unkeyed(self) -> Iterator[tuple[int, Any, Any]]:
        """Of operator state: the subtask, the key or the position, and the value."""
        for handle in self.handles:
            if handle.first_group < 0:
                data = self.store.read_whole(handle)
                for block in decode_segment(data, range(0)):
                    if block.state == self.state:
                        keys, values, _ = self._decoded(block)
                        for key, value in zip(keys, values, strict=True):
                            yield origin_of(data).subtask, key, value

    def _decoded(self, block: GroupBlock) -> tuple[list[Any], list[Any], list[Any]]:
        keys, values, removed = decoded(block, self.trust)
        migrate = migration_of_state(self.state, type_of(block.schema), self.type_info)
        return keys, values if migrate is None else list(map(migrate, values)), removed


def parts_of(catalog: Catalog, uid: str, state: StateInfo, trust: bool = False) -> list[StatePart]:
    """What each subtask has of a state; those that have nothing are left out."""
    saved = catalog.saved(uid)
    wanted = (state.name, state.kind)
    store, groups = catalog.snapshot.store, range(saved.vertex.max_parallelism)
    holding = [
        # A database is opened with all of its files.
        tuple(h for h in part.segments if wanted in h.states or h.database)
        for part in saved.parts
    ]
    return [
        StatePart(store, handles, state.name, state.type_info, groups, trust)
        for handles in holding
        if any(wanted in handle.states for handle in handles)
    ]


def decoded(block: GroupBlock, trust: bool) -> tuple[list[Any], list[Any], list[Any]]:
    """The keys, values and removed keys of a block; StateError if something cannot be unpickled.

    Without `trust` nothing is unpickled: of values it is told that they are pickled, and pickled
    keys are a StateError, since nobody can say which of them are the same.
    """
    try:
        unpickle = unpickled if trust else described
        keys, values, removed = decode_entries(block.payload, block.schema, unpickle)
    except PenstockError:
        raise
    except UNREADABLE as error:
        raise unreadable(block.state, error) from error
    for key in (*keys, *removed):
        if isinstance(key, Pickled):
            raise _untrusted(block.state, f"has pickled keys ({key.type_name}, {key.size:,} bytes)")
    return keys, values, removed


def check_plain(state: StateInfo) -> None:
    """StateError if values of the state are pickled."""
    if needs_pickle(schema_of(state.type_info)):
        raise _untrusted(state.name, f"has pickled values: its type is {state.type_info}")


def _untrusted(state: str, what: str) -> StateError:
    return StateError(
        f"state {state!r} {what}, and to unpickle is to run whatever is in the files: if you trust "
        "them, say so (penstock state get --trust, or SavepointReader(path, trust=True))"
    )
