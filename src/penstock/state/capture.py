"""What of a table goes into a checkpoint, captured while the loop stands still.

A value that can change must be written at once. Values that cannot are only *captured* then, as a
list of references, and written off the loop.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from penstock.common.key_batches import by_group, key_groups
from penstock.common.spool import Spool
from penstock.common.typeinfo import TypeInformation
from penstock.errors import StateError
from penstock.state.entries import encode_entries, unwritable
from penstock.state.gathering import gather
from penstock.state.kinds import ATOMIC
from penstock.state.schema import schema_of
from penstock.state.segments import GroupBlock


def _frozen(kind: TypeInformation, types: set[type]) -> bool:
    """Whether no value of these types can change any more."""
    return types <= ATOMIC or (kind.is_immutable() and types <= ATOMIC | {tuple})


@dataclass
class TableCapture:
    """What of one table goes into a checkpoint: references until `write`, then blocks."""

    name: str
    kind: str
    type_info: TypeInformation
    max_parallelism: int
    keys: list[Any]
    values: list[Any]
    removed: list[Any]
    types: set[type]
    """Those of the values."""
    spool: Spool
    """Where the bytes of blocks wait."""
    written: list[GroupBlock] | None = None

    @classmethod
    def of(
        cls,
        name: str,
        kind: str,
        type_info: TypeInformation,
        max_parallelism: int,
        keys: list[Any],
        values: list[Any],
        removed: list[Any],
        spool: Spool,
    ) -> TableCapture:
        """Capture these entries, and write them at once if a value can change."""
        types = set(map(type, values))
        capture = cls(name, kind, type_info, max_parallelism, keys, values, removed, types, spool)
        if not _frozen(type_info, types):
            capture.write()
        return capture

    def blocks(self) -> list[GroupBlock]:
        if self.written is None:
            self.write()
        assert self.written is not None
        return self.written

    def write(self) -> None:
        schema, most = schema_of(self.type_info), self.max_parallelism
        only = next(iter(self.types)) if len(self.types) == 1 else None
        kept = gather(self.keys, self.values, most, self.type_info, only, self.spool)
        removed = by_group(key_groups(self.removed, most), self.removed)
        written = []
        for group in sorted({*kept, *removed}):
            gone = removed.get(group, [])
            try:
                if group in kept:
                    parts = kept.pop(group).parts(gone)
                else:
                    parts = [encode_entries(self.type_info, [], [], gone)]
            except Exception as error:
                raise self._unwritable(group, error) from error
            block = GroupBlock(self.name, self.kind, group, parts, schema)
            written.append(block.kept_in(self.spool))
        self.keys = self.values = self.removed = []
        self.written = written

    def _unwritable(self, group: int, error: Exception) -> StateError:
        groups = key_groups(self.keys, self.max_parallelism)
        keys = by_group(groups, self.keys).get(group, [])
        values = by_group(groups, self.values).get(group, [])
        return unwritable(self.name, self.type_info, keys, values, error)


def encode_block(
    name: str, type_info: TypeInformation, keys: list[Any], values: list[Any]
) -> bytes:
    """The bytes of a block; StateError names the state and the key that cannot be written."""
    try:
        return encode_entries(type_info, keys, values)
    except Exception as error:
        raise unwritable(name, type_info, keys, values, error) from error
