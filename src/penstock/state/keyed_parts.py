"""What the keyed state of an operator in a checkpoint consists of: segments, and databases.

They come in the order in which they are to be applied. A database is a run of files: first a
segment that names its tables and holds what is in none of them, then the files of RocksDB.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path
from typing import Protocol

from penstock.state.database_files import SavedDatabase, Table
from penstock.state.segments import BlockPlace, GroupBlock, Origin, read_blocks, read_index
from penstock.state.timers import KIND as TIMERS


class StoredFile(Protocol):
    """A file of a checkpoint; what is read of it is verified."""

    @property
    def database(self) -> str:
        """Which database it belongs to; empty if to none."""
        ...

    @property
    def file(self) -> str:
        """What it is called in the folder of its database; empty for a segment."""
        ...

    @property
    def groups(self) -> range:
        """The key groups that may have entries in it."""
        ...

    def __call__(self, start: int, size: int) -> bytes:
        """The bytes from a place on, up to a number of them."""
        ...

    def chunks(self) -> Iterator[bytes]:
        """All of it from front to back, none of which is kept."""
        ...


@dataclass(frozen=True)
class KeyedPart:
    """A segment, and the database that it belongs to if there is one."""

    origin: Origin
    places: Sequence[BlockPlace]
    read: StoredFile
    database: SavedDatabase | None = None

    def own_blocks(self, groups: range) -> Iterator[GroupBlock]:
        """What the segment itself holds of these key groups."""
        return read_blocks(self.read, self.places, groups)

    def blocks(self, groups: range, state: str | None = None) -> Iterator[GroupBlock]:
        """All that there is of these key groups, of all states or of one."""
        places = [place for place in self.places if state in (None, place.state)]
        yield from read_blocks(self.read, places, groups)
        if self.database is not None:
            yield from self.database.blocks(groups, state)


def keyed_parts(files: Iterable[StoredFile]) -> Iterator[KeyedPart]:
    """The parts that these files of keyed state are."""
    for database, run in groupby(files, lambda file: file.database):
        if database:
            yield _database(*run)
        else:
            for file in run:
                yield KeyedPart(*read_index(file), file)


def _database(described: StoredFile, *files: StoredFile) -> KeyedPart:
    origin, places = read_index(described)
    own = [place for place in places if place.kind == TIMERS]
    tables = [Table(p.state, p.kind, p.schema) for p in places if p.kind != TIMERS]
    database = SavedDatabase(described.groups, tables, _Unpacking(files))
    return KeyedPart(origin, own, described, database)


@dataclass(frozen=True)
class _Unpacking:
    files: Sequence[StoredFile]

    def __call__(self, folder: str) -> None:
        for file in self.files:
            with Path(folder, file.file).open("wb") as target:
                target.writelines(file.chunks())
