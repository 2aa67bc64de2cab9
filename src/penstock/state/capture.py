"""What of a table goes into a checkpoint, captured while the loop stands still.

A value that can change must be written at once. Values that cannot are only *captured* then, as a
list of references, and written off the loop.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from penstock.common.key_batches import by_group, key_groups
from penstock.common.typeinfo import TypeInformation
from penstock.state.entries import UNKNOWN, Known, encode_entries, only_type, unwritable
from penstock.state.kinds import ATOMIC
from penstock.state.schema import schema_of
from penstock.state.segments import GroupBlock


def _frozen(kind: TypeInformation, values: list[Any]) -> bool:
    """Whether none of the values can change any more."""
    types = set(map(type, values))
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
    ) -> TableCapture:
        """Capture these entries, and write them at once if a value can change."""
        capture = cls(name, kind, type_info, max_parallelism, keys, values, removed)
        if not _frozen(type_info, values):
            capture.write()
        return capture

    def blocks(self) -> list[GroupBlock]:
        if self.written is None:
            self.write()
        assert self.written is not None
        return self.written

    def write(self) -> None:
        schema = schema_of(self.type_info)
        most = self.max_parallelism
        groups = key_groups(self.keys, most)
        keys, values = by_group(groups, self.keys), by_group(groups, self.values)
        removed = by_group(key_groups(self.removed, most), self.removed)
        # Here, in the order in which they were made: in that of key groups they lie far apart.
        known = Known(only_type(self.keys), only_type(self.values))
        self.keys = self.values = self.removed = []
        self.written = [
            GroupBlock(
                self.name,
                self.kind,
                group,
                encode_block(
                    self.name,
                    self.type_info,
                    keys.get(group, []),
                    values.get(group, []),
                    removed.get(group, []),
                    known,
                ),
                schema,
            )
            for group in sorted({*keys, *removed})
        ]


def encode_block(
    name: str,
    type_info: TypeInformation,
    keys: list[Any],
    values: list[Any],
    removed: list[Any],
    known: Known = UNKNOWN,
) -> bytes:
    """The bytes of a block; StateError names the state and the key that cannot be written."""
    try:
        return encode_entries(type_info, keys, values, removed, known)
    except Exception as error:
        raise unwritable(name, type_info, keys, values, error) from error
