"""Files of a RocksDB database that are part of a checkpoint.

RocksDB never changes a file of entries once it is written. So a checkpoint can have these files as
they are: they are linked while the loop stands still, stored off it, and only those that no earlier
checkpoint has stored. A subtask goes on with copies of them, without looking at a single entry;
whoever needs entries (another number of subtasks, a command line) opens such copies and reads them.
"""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from penstock.common.settings import StateSettings
from penstock.errors import StorageError
from penstock.state.rocks_blocks import table_blocks
from penstock.state.rocks_database import RocksDatabase
from penstock.state.schema import Schema, type_of
from penstock.state.segments import GroupBlock

LASTING = ".sst"
"""How the names of files end that never change."""


@dataclass(frozen=True)
class LinkedFiles:
    """The files of a database as they were at a cut."""

    folder: str
    spans: Mapping[str, tuple[tuple[str, str], ...]]
    """(name, kind) of the states with entries in a file, by the file's name."""

    def names(self) -> list[str]:
        return sorted(path.name for path in Path(self.folder).iterdir())

    def read(self, name: str) -> bytes:
        try:
            return Path(self.folder, name).read_bytes()
        except OSError as error:
            raise StorageError(f"RocksDB's file {name} cannot be read: {error}") from error

    def discard(self) -> None:
        """Delete the links; may be called more than once."""
        shutil.rmtree(self.folder, ignore_errors=True)


class Table(NamedTuple):
    """A table of a database. Its entries are found by its place among the others."""

    state: str
    kind: str
    schema: Schema


@dataclass(frozen=True)
class SavedDatabase:
    """A database in a checkpoint."""

    tables: Sequence[Table]
    unpack: Callable[[str], None]
    """Puts the files, verified, into a folder."""

    def blocks(self, groups: range, state: str | None = None) -> Iterator[GroupBlock]:
        """What it holds of these key groups, of all states or of one."""
        with tempfile.TemporaryDirectory(prefix="penstock-files-") as folder:
            database = RocksDatabase(StateSettings(local_dir=folder))
            try:
                database.adopt(self.unpack)
                view = database.view()
                for number, table in enumerate(self.tables):
                    if state in (None, table.state):
                        kind = type_of(table.schema)
                        yield from table_blocks(view, number, groups, table.state, table.kind, kind)
            finally:
                database.close()
