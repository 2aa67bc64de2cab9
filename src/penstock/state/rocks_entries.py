"""The entries of a table in RocksDB, behind a bounded cache of live objects.

To whoever uses it this is a dict. What it holds itself, as a dict, is the cache: objects that were
read or written lately. A hit costs little more than a dict's; what is not cached is looked up in
the database, and what leaves the cache is written to it if it was changed.

Which entries were changed is known from the table's changes: whoever alters an entry, also in
place, says so there before the next record. The rules that make this safe:

* Objects leave the cache only when another key is looked up or put. An operator works on one key
  of a table at a time, so nobody is in the middle of changing them.
* The key that is being looked up or put is not evicted, and if it was changed it stays noted as
  changed: its object may be in somebody's hands.
* A removed key is remembered until the removal is written.
"""

from __future__ import annotations

import contextlib
import pickle
import struct
from collections.abc import Iterable, Iterator
from itertools import islice
from typing import Any

from penstock import kept
from penstock.common.keys import encode_key, group_of_encoding
from penstock.errors import StateError
from penstock.state.entries import UNREADABLE, unreadable, unwritable
from penstock.state.generations import Generations
from penstock.state.rocks_database import RocksDatabase
from penstock.state.rocks_keys import place
from penstock.state.schema import PICKLED

ABSENT: Any = object()

_TABLE = struct.Struct(">H")
_OBJECT_BYTES = 200
"""What an entry takes in the cache beyond its value, about."""
_SAMPLE = 16
"""The size of one value is taken to be that of so many."""
_WRITE = 1 << 22
"""About so many bytes are written to the database at once."""
# A dict's own methods, which look into the cache only.
_get, _set, _pop = dict.get, dict.__setitem__, dict.pop
_count, _cached_keys, _newest_keys = dict.__len__, dict.__iter__, dict.__reversed__


class RocksEntries(dict[Any, Any]):
    """A dict whose entries need not fit into memory.

    Of a dict's methods it has those that tables are used with: `get`, `in`, `[]`, `del`, `pop`,
    iteration, `items` and `len`.
    """

    def __init__(
        self,
        name: str,
        number: int,
        database: RocksDatabase,
        changes: Generations,
        max_parallelism: int,
    ) -> None:
        super().__init__()
        self._name = name
        self._number = number
        self._database = database
        self._changes = changes
        self._max_parallelism = max_parallelism
        self._removed: set[Any] = set()
        self._unwritten: set[Any] = set()
        """Of a generation that has ended, or restored, and not in the database yet."""
        self._writes = 0
        """How often something was written to the database."""
        self._limit = 1
        self._budget = 0
        self._seen, self._seen_bytes = 1, 64

    def allow(self, budget: int) -> None:
        """Let the cache take about so many bytes."""
        self._budget = budget
        self._set_limit()

    def _set_limit(self) -> None:
        # Objects take about three times the space of their pickled form.
        each = _OBJECT_BYTES + 3 * self._seen_bytes // self._seen
        self._limit = max(1, min(self._budget // each, _SAMPLE * self._seen))

    def _learn_sizes(self) -> None:
        """See how large the newest values are, if too few were seen for as many as are cached."""
        count = _count(self)
        if _SAMPLE * self._seen > count:
            return
        for key in islice(_newest_keys(self), max(_SAMPLE, count // _SAMPLE)):
            self._seen += 1
            # One that cannot be written is an error when it has to be.
            with contextlib.suppress(StateError):
                self._seen_bytes += len(self._pickled(key, _get(self, key)))

    # --- as a dict ----------------------------------------------------------------------------

    def get(self, key: Any, default: Any = None) -> Any:
        value = _get(self, key, ABSENT)
        if value is ABSENT:
            value = self._load(key)
            if value is ABSENT:
                return default
        return value

    def __missing__(self, key: Any) -> Any:
        value = self._load(key)
        if value is ABSENT:
            raise KeyError(key)
        return value

    def __contains__(self, key: object) -> bool:
        return _get(self, key, ABSENT) is not ABSENT or self._load(key) is not ABSENT

    def __setitem__(self, key: Any, value: Any) -> None:
        _set(self, key, value)
        if _count(self) > self._limit:
            self._evict(key)

    def __delitem__(self, key: Any) -> None:
        if _pop(self, key, ABSENT) is ABSENT and self._stored(key) is None:
            raise KeyError(key)
        self._removed.add(key)

    def pop(self, key: Any, default: Any = ABSENT) -> Any:
        value = self.get(key, ABSENT)
        if value is not ABSENT:
            del self[key]
            return value
        if default is ABSENT:
            raise KeyError(key)
        return default

    def __iter__(self) -> Iterator[Any]:
        return (key for key, _ in self.in_turn())

    def __len__(self) -> int:
        """How many entries there are; they are counted."""
        return sum(1 for _ in self.in_turn())

    def items(self) -> Any:
        return self.in_turn()

    def in_turn(self) -> Iterator[tuple[Any, Any]]:
        """The entries with their values, none of which comes into the cache by that."""
        seen = set()
        for key in list(_cached_keys(self)):
            value = _get(self, key, ABSENT)
            if value is not ABSENT:
                seen.add(key)
                yield key, value
        for chunk in self._database.chunks(_TABLE.pack(self._number)):
            writes = self._writes
            for stored_at, read in chunk:
                # It may have been altered or removed since the piece was read.
                data = read if self._writes == writes else self._database.get(stored_at)
                if data is None:
                    continue
                key, value = self._unpickled(data)
                if key not in seen and key not in self._removed:
                    # It may have been looked up meanwhile, and be another object or value now.
                    yield key, _get(self, key, value)

    # --- between the cache and the database ---------------------------------------------------

    def encode(self, key: Any) -> bytes:
        """The key of the database; entries of a key group lie together."""
        encoding = encode_key(key)
        group = group_of_encoding(encoding, self._max_parallelism)
        return place(self._number, group) + encoding

    def _stored(self, key: Any) -> bytes | None:
        return None if key in self._removed else self._database.get(self.encode(key))

    def _load(self, key: Any) -> Any:
        data = self._stored(key)
        if data is None:
            return ABSENT
        if _count(self) >= self._limit:
            self._evict(key)
        value = self._unpickled(data)[1]
        _set(self, key, value)
        return value

    def _evict(self, key: Any) -> None:
        """Make room if there is none: half of the cache, but never `key`.

        What was not changed lately goes first.
        """
        self._learn_sizes()
        self._set_limit()
        if _count(self) < self._limit:
            return
        lately = set(self._changes.current)
        surplus = _count(self) - self._limit // 2
        keys = [cached for cached in _cached_keys(self) if cached != key]
        leaving = [cached for cached in keys if cached not in lately][:surplus]
        if len(leaving) < surplus:
            changed = [cached for cached in keys if cached in lately]
            leaving += changed[: surplus - len(leaving)]
        unwritten = self._unwritten
        self._write([left for left in leaving if left in lately or left in unwritten])
        unwritten |= lately
        unwritten.difference_update(leaving)
        self._changes.note()
        if key in lately:
            self._changes.current.add(key)
        for left in leaving:
            _pop(self, left)

    def flush(self) -> None:
        """Write everything that the database does not have yet; the cache stays as it is."""
        self._write(self._changes.current | self._unwritten)
        self._unwritten.clear()
        self._changes.note()

    def _write(self, keys: Iterable[Any]) -> None:
        """Write the removals there were, and the values of those of `keys` that are cached."""
        gone = [self.encode(key) for key in self._removed if _get(self, key, ABSENT) is ABSENT]
        if gone:
            self._put([], gone)
        puts: list[tuple[bytes, bytes]] = []
        size = 0
        for key in keys:
            value = _get(self, key, ABSENT)
            if value is ABSENT:
                continue
            puts.append((self.encode(key), self._pickled(key, value)))
            size += len(puts[-1][1])
            if size >= _WRITE:
                self._put(puts)
                puts, size = [], 0
        if puts:
            self._put(puts)
        self._removed.clear()

    def _put(self, puts: list[tuple[bytes, bytes]], gone: Iterable[bytes] = ()) -> None:
        self._database.write(puts, gone)
        self._writes += 1
        self._seen += len(puts)
        self._seen_bytes += sum(len(data) for _, data in puts)

    def _unpickled(self, data: bytes) -> Any:
        try:
            return kept.loads(data)
        except UNREADABLE as error:
            raise unreadable(self._name, error) from error

    def _pickled(self, key: Any, value: Any) -> bytes:
        try:
            return pickle.dumps((key, value), protocol=5)
        except Exception as error:
            raise unwritable(self._name, PICKLED, [key], [value], error) from error

    # --- checkpoints --------------------------------------------------------------------------

    def end_generation(self, checkpoint: int) -> None:
        """The changes up to here belong to `checkpoint`; what is not written stays noted."""
        self._unwritten |= self._changes.current
        self._changes.end(checkpoint)

    def changed(self) -> tuple[list[Any], list[Any], list[Any], list[Any]]:
        """What a delta must hold: cached keys, their values, removed keys, keys to look up."""
        keys, values, removed, elsewhere = [], [], [], []
        for key in self._changes.changed():
            value = _get(self, key, ABSENT)
            if value is not ABSENT:
                keys.append(key)
                values.append(value)
            elif key in self._removed:
                removed.append(key)
            else:
                elsewhere.append(key)
        return keys, values, removed, elsewhere

    def restore(self, keys: Iterable[Any], values: Iterable[Any], removed: Iterable[Any]) -> None:
        """Put and remove entries that count as settled: no delta holds them."""
        for key, value in zip(keys, values, strict=True):
            self[key] = value
            self._unwritten.add(key)
        for key in removed:
            self.pop(key, None)
