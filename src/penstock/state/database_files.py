"""Files of a RocksDB database that are part of a checkpoint.

RocksDB never changes a file of entries once it is written. So a checkpoint can have these files as
they are: they are linked while the loop stands still, stored off it, and only those that no earlier
checkpoint has stored. A subtask goes on with copies of them, without looking at a single entry;
whoever needs entries (another number of subtasks, a command line) opens such copies and reads them.
"""

from __future__ import annotations

import importlib.util
import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from penstock.common.settings import StateSettings
from penstock.errors import StateError, StorageError
from penstock.state.rocks_blocks import table_blocks
from penstock.state.rocks_database import RocksDatabase
from penstock.state.schema import Schema, type_of
from penstock.state.segments import GroupBlock

LASTING = ".sst"
"""How the names of files end that never change."""
_CHUNK = 1 << 20
"""So many bytes of a file are read at a time."""


@dataclass(frozen=True)
class LinkedFiles:
    """The files of a database as they were at a cut."""

    folder: str
    names: Sequence[str]
    spans: Mapping[str, tuple[tuple[str, str], ...]]
    """(name, kind) of the states with entries in a file, by the file's name."""
    entries_size: int
    """The bytes of all entries in them, which are compressed."""
    threads: int = 1
    """How many of them are stored at a time."""

    def chunks(self, name: str) -> Iterator[bytes]:
        """A file from front to back."""
        try:
            with Path(self.folder, name).open("rb") as file:
                while chunk := file.read(_CHUNK):
                    yield chunk
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

    groups: range
    tables: Sequence[Table]
    unpack: Callable[[str], None]
    """Puts the files, verified, into a folder."""

    def blocks(
        self, groups: range, state: str | None = None, local_dir: str | None = None
    ) -> Iterator[GroupBlock]:
        """What it holds of these key groups, of all states or of one.

        A copy of the files is made for that, in `local_dir` or where temporary files go.
        """
        tables = list(enumerate(self.tables))
        wanted = [(at, table) for at, table in tables if state in (None, table.state)]
        if not wanted:
            return
        if importlib.util.find_spec("rocksdict") is None:
            raise StateError(
                "this checkpoint has files of RocksDB, and the package rocksdict, which reads "
                'them, is not installed; pip install "penstock[rocksdb]"'
            )
        database = RocksDatabase(StateSettings(local_dir=local_dir))
        try:
            database.adopt(self.unpack)
            view = database.view()
            for number, (name, kind, schema) in wanted:
                yield from table_blocks(view, number, groups, name, kind, type_of(schema))
        finally:
            database.close()
