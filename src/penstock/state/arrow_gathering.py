"""Texts and bytes of very many entries on their way into the blocks of their key groups.

What `state.gathering` does with one object after another is done here, with pyarrow and numpy, to
a whole batch: its bytes are put in the order of key groups, and those of each group cut out of
them. What comes out is the same to the byte. Imported only if both are installed.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import chain
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from penstock.common.key_batches import key_groups
from penstock.common.packed_keys import Numbers, packed_key_groups
from penstock.common.spool import Spool
from penstock.state.columns import Parts, write_joined

_BATCH = 1 << 16
_SAMPLE = 64
_LONG = 256
"""If a key has more bytes, the batch is hashed key by key: the others would wait for that one."""
_SMALL = 127
"""A length up to here is written as one byte."""
_TYPES = {b"s": pa.large_string(), b"y": pa.large_binary()}
_PREFIXES = {b"s": b"s", b"y": b"b"}
"""What the encodings of such keys begin with, see `keys.encode_key`."""


class Slices:
    """The keys of one key group, or their values, cut out of the batches they came in."""

    def __init__(self, letter: bytes) -> None:
        self._letter = letter
        self._lengths: list[Sequence[int]] = []
        self._data: Parts = []

    def __len__(self) -> int:
        return sum(map(len, self._lengths))

    def add(self, lengths: Sequence[int], data: bytes) -> None:
        self._lengths.append(lengths)
        self._data.append(data)

    def spill(self, spool: Spool) -> None:
        """Leave the bytes that there are to the spool."""
        self._data = spool.put(self._data)

    def write(self, parts: Parts) -> None:
        """Append the bytes of the column, as `columns.write_column` would."""
        small = [some for some in self._lengths if isinstance(some, bytes)]
        all_small = len(small) == len(self._lengths)
        lengths = b"".join(small) if all_small else list(chain(*self._lengths))
        write_joined(parts, self._letter, lengths, self._data)


def slice_by_group(
    keys: Sequence[Any],
    values: Sequence[Any],
    max_parallelism: int,
    key_letter: bytes,
    value_letter: bytes,
    spool: Spool,
) -> dict[int, tuple[Slices, Slices]]:
    """The columns of keys and of values by key group; the letters are those of `joined_letter`.

    UnicodeEncodeError if a text is none that UTF-8 has bytes for: pyarrow does not take those.
    """
    slices: dict[int, tuple[Slices, Slices]] = {}
    joined = 0
    for batch, theirs in _batches(keys, values, spool.limit // 2):
        packed = pa.array(batch, _TYPES[key_letter])
        groups = _key_groups(batch, packed, key_letter, max_parallelism)
        order, counts = np.argsort(groups, kind="stable"), np.bincount(groups)
        present = np.flatnonzero(counts)
        ends = np.cumsum(counts[present]).tolist()
        pairs = zip(
            _sliced(packed.take(order), ends),
            _sliced(pa.array(theirs, _TYPES[value_letter]).take(order), ends),
            strict=True,
        )
        for group, (key_slice, value_slice) in zip(present.tolist(), pairs, strict=True):
            if group not in slices:
                slices[group] = Slices(key_letter), Slices(value_letter)
            slices[group][0].add(*key_slice)
            slices[group][1].add(*value_slice)
            joined += len(key_slice[1]) + len(value_slice[1])
        if joined > spool.limit:
            for column in chain(*slices.values()):
                column.spill(spool)
            joined = 0
    return slices


def _batches(
    keys: Sequence[Any], values: Sequence[Any], most: int
) -> Iterator[tuple[Sequence[Any], Sequence[Any]]]:
    """The entries in batches; where values are large, those of a batch have about `most` bytes."""
    start, count = 0, _BATCH
    while start < len(keys):
        theirs = values[start : start + count]
        # A few tell of all: to ask every value how long it is takes as long as to write it.
        while _SAMPLE * sum(map(len, theirs[::_SAMPLE])) > most and count > _SAMPLE:
            count //= 2
            theirs = theirs[:count]
        yield keys[start : start + count], theirs
        start += count


def _key_groups(keys: Sequence[Any], packed: Any, letter: bytes, max_parallelism: int) -> Numbers:
    places, content = _buffers(packed)
    if np.diff(places).max() > _LONG:
        return np.array(key_groups(keys, max_parallelism), np.uint16)
    return packed_key_groups(places, content, _PREFIXES[letter], max_parallelism)


def _sliced(packed: Any, ends: Sequence[int]) -> Iterator[tuple[Sequence[int], bytes]]:
    """The items up to each of the ends: the length of each, and all their bytes."""
    lengths = _lengths(packed)
    places, content = _buffers(packed)
    begin = 0
    # Copies, not views: while the batch is near they cost little, and views are objects that the
    # garbage collector looks through, with all that it has not looked through yet: the entries.
    for end in ends:
        yield lengths[begin:end], content[places[begin] : places[end]].tobytes()
        begin = end


def _buffers(packed: Any) -> tuple[Numbers, Numbers]:
    """Where each item begins and the last one ends, and the bytes of all."""
    _, places, content = packed.buffers()
    return np.frombuffer(places, np.int64), np.frombuffer(content or b"", np.uint8)


def _lengths(packed: Any) -> Sequence[int]:
    """The length of each item, of texts in characters; as bytes if all are small."""
    measure = pc.utf8_length if packed.type == _TYPES[b"s"] else pc.binary_length
    lengths = measure(packed).to_numpy()
    if lengths.max() > _SMALL:
        return list(lengths.tolist())
    return bytes(lengths.astype(np.uint8))
