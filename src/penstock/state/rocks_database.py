"""A RocksDB database for one operator in one subtask: made when something is first put into it.

Its files are local and live no longer than the subtask's attempt: what must survive is in
checkpoints. So nothing is logged ahead and nothing is synchronised.
"""

from __future__ import annotations

import contextlib
import re
import shutil
import weakref
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

from penstock.common.settings import StateSettings
from penstock.errors import ConfigurationError, PenstockError, StorageError
from penstock.state.rocks_folders import OwnedFolder
from penstock.state.rocks_options import rocks_options

_CHUNK = 256


class RocksDatabase:
    """Bytes by bytes, in order."""

    def __init__(self, settings: StateSettings) -> None:
        self._settings = settings
        self._remove: Callable[[], Any] = lambda: None
        self._options: Any = None
        self._db: Any = None

    def get(self, key: bytes) -> bytes | None:
        return None if self._db is None else self._db.get(key)

    def write(self, puts: Iterable[tuple[bytes, bytes]], deletes: Iterable[bytes]) -> None:
        """All of it, or nothing of it."""
        db = self._opened()
        # Imported where it is used: only those who choose this backend need the package.
        from rocksdict import WriteBatch

        batch = WriteBatch(raw_mode=True)
        for key in deletes:
            batch.delete(key)
        for key, value in puts:
            batch.put(key, value)
        try:
            db.write(batch)
        except Exception as error:
            raise StorageError(f"RocksDB cannot write to {db.path()}: {error}") from error

    def chunks(self, prefix: bytes) -> Iterator[list[tuple[bytes, bytes]]]:
        """What is there under keys that begin with `prefix`, in order, some at a time.

        Each piece is read when it is asked for: what is written meanwhile is found if it lies
        ahead.
        """
        start = prefix
        while self._db is not None:
            chunk: list[tuple[bytes, bytes]] = []
            for key, value in self._db.items(from_key=start):
                if not key.startswith(prefix) or len(chunk) == _CHUNK:
                    break
                chunk.append((key, value))
            yield chunk
            if len(chunk) < _CHUNK:
                return
            start = chunk[-1][0] + b"\0"

    def view(self) -> View:
        """What is there now, unaffected by what is written later."""
        return View(None if self._db is None else self._db.iter())

    def is_made(self) -> bool:
        """Whether anything was put into it yet."""
        return self._db is not None

    def adopt(self, unpack: Callable[[str], None]) -> None:
        """Begin with files of another one; `unpack` puts them into the folder it is called with."""
        assert self._db is None, "a database begins once"
        self._db = self._open(unpack)

    def link(self, name: str) -> str:
        """Write all that is in memory to files, and link these; the folder with the links."""
        from rocksdict import Checkpoint

        db = self._opened()
        folder = f"{db.path()}/{name}"
        try:
            Checkpoint(db).create_checkpoint(folder)
            for path in Path(folder).iterdir():
                # No more than what another database begins with: there is nothing in the log,
                # and options are its own.
                if path.suffix != ".sst" and not path.name.startswith(("CURRENT", "MANIFEST-")):
                    path.unlink()
        except Exception as error:
            shutil.rmtree(folder, ignore_errors=True)
            raise StorageError(f"RocksDB cannot link its files in {db.path()}: {error}") from error
        return folder

    def entries_size(self) -> int:
        """The bytes of all entries in its files, as they were before they were compressed."""
        described = self._db.property_value("rocksdb.aggregated-table-properties") or ""
        sizes = re.findall(r"raw (?:key|value) size=(\d+)", described)
        return sum(map(int, sizes)) or 2 * self.size()

    def spans(self) -> dict[str, tuple[bytes, bytes]]:
        """The first and the last key in each of its files of entries, by the file's name."""
        files = () if self._db is None else self._db.live_files()
        return {file["name"].lstrip("/"): (file["start_key"], file["end_key"]) for file in files}

    def delete(self, start: bytes, end: bytes) -> None:
        """Delete everything from `start` on that lies before `end`."""
        if self._db is not None and start < end:
            self._db.delete_range(start, end)

    def _opened(self) -> Any:
        if self._db is None:
            self._db = self._open()
        return self._db

    def _open(self, unpack: Callable[[str], None] | None = None) -> Any:
        from rocksdict import Rdict, WriteOptions

        self._options = options = rocks_options(self._settings)
        try:
            folder = OwnedFolder(self._settings.local_dir)
        except OSError as error:
            raise ConfigurationError(
                f"state.backend.rocksdb.localdir: cannot make a directory: {error}"
            ) from error
        try:
            if unpack is not None:
                unpack(folder.path)
            db: Any = Rdict(folder.path, options)
        except PenstockError:
            folder.remove()
            raise
        except Exception as error:
            folder.remove()
            raise StorageError(
                f"RocksDB cannot begin in {folder.path}: {error}; "
                "state.backend.rocksdb.localdir says where its files go"
            ) from error
        # Also where nobody closes it, because its slot was given up.
        self._remove = weakref.finalize(self, _discard, db, folder)
        unlogged: Any = WriteOptions()
        unlogged.disable_wal = True
        db.set_write_options(unlogged)
        return db

    def gauges(self) -> dict[str, Callable[[], float]]:
        """What can be told of it at any time, by the names of metrics."""
        return {
            "rocksdb.size": self.size,
            "rocksdb.blockCacheHitRatio": self.block_cache_hit_ratio,
            "rocksdb.meanReadMicros": self.mean_read_micros,
        }

    def size(self) -> int:
        """The bytes in its files and in its write buffers."""
        if self._db is None:
            return 0
        names = ("rocksdb.total-sst-files-size", "rocksdb.cur-size-all-mem-tables")
        return sum(self._db.property_int_value(name) or 0 for name in names)

    def mean_read_micros(self) -> float:
        """How long a read takes on average, in microseconds; 0 before the first."""
        reads = self._statistic("rocksdb.db.get.micros", "COUNT")
        return self._statistic("rocksdb.db.get.micros", "SUM") / reads if reads else 0.0

    def block_cache_hit_ratio(self) -> float:
        """The part of reads of blocks that the block cache served; 0 before the first."""
        hits = self._statistic("rocksdb.block.cache.hit", "COUNT")
        reads = hits + self._statistic("rocksdb.block.cache.miss", "COUNT")
        return hits / reads if reads else 0.0

    def _statistic(self, name: str, column: str) -> float:
        """From lines such as `name COUNT : 5 SUM : 7`."""
        statistics = None if self._options is None else self._options.get_statistics()
        for line in (statistics or "").splitlines():
            words = line.split()
            if words and words[0] == name:
                return float(words[words.index(column) + 2])
        return 0.0

    def close(self) -> None:
        """Close it and remove its files; a view that is still read keeps what it needs."""
        if self._db is not None:
            self._db = None
        self._remove()


def _discard(db: Any, folder: OwnedFolder) -> None:
    # In this order: RocksDB writes what it holds when it goes, and tries for seconds where the
    # folder is gone already.
    with contextlib.suppress(Exception):
        db.close()
    folder.remove()


class View:
    """A database at one moment; may be used off the loop, by one thread.

    It is a cursor: RocksDB lets one see what was there when it was made, wherever it is moved.
    """

    def __init__(self, cursor: Any) -> None:
        self._cursor = cursor

    def between(self, start: bytes, end: bytes) -> Iterator[tuple[bytes, bytes]]:
        """What is there from `start` on and before `end`, in order."""
        cursor = self._cursor
        if cursor is None:
            return
        cursor.seek(start)
        while cursor.valid() and (key := cursor.key()) < end:
            yield key, cursor.value()
            cursor.next()
        # A cursor that cannot go on looks as if it were at the end.
        cursor.status()

    def find(self, keys: list[bytes]) -> Iterator[bytes | None]:
        """What is there under each of these keys."""
        cursor = self._cursor
        for key in keys:
            if cursor is None:
                yield None
                continue
            cursor.seek(key)
            cursor.status()
            yield cursor.value() if cursor.valid() and cursor.key() == key else None
