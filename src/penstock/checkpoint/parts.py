"""Reading a segment in parts, each of which is verified.

A subtask that was rescaled needs some key groups of a segment. What it reads are the pieces in
which their bytes lie, and a piece has a checksum of its own in the handle.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from penstock.checkpoint.checksums import PIECE
from penstock.checkpoint.handles import SegmentHandle
from penstock.checkpoint.store import SegmentStore, is_damage
from penstock.errors import CorruptCheckpointError, StorageError

CHUNK = 16 * PIECE
"""So many bytes are read at once at most: whoever waits can be told how far it is."""


class VerifiedParts:
    """Called with a place and a size, gives the bytes there; CorruptCheckpointError if altered.

    One segment is read by one after another: the last piece that was read is kept.
    """

    def __init__(self, handle: SegmentHandle, store: SegmentStore) -> None:
        self._handle = handle
        self._store = store
        self._start = 0
        self._kept = b""

    @property
    def database(self) -> str:
        """Which database the segment belongs to; empty if to none."""
        return self._handle.database

    @property
    def file(self) -> str:
        """What it is called in the folder of its database; empty for a segment."""
        return self._handle.file

    @property
    def groups(self) -> range:
        """The key groups that may have entries in it."""
        return range(self._handle.first_group, self._handle.last_group + 1)

    def chunks(self) -> Iterator[bytes]:
        """All of it from front to back, none of which is kept."""
        if not self._handle.pieces:
            yield self._whole()
            return
        for start in range(0, self._handle.size, CHUNK):
            yield self._pieces(start, min(start + CHUNK, self._handle.size))

    def __call__(self, start: int, size: int) -> bytes:
        end = min(start + size, self._handle.size)
        if start >= end:
            # No piece has these bytes, so there is nothing to verify.
            return b""
        if not self._start <= start <= end <= self._start + len(self._kept):
            self._keep(start, end)
        return self._kept[start - self._start : end - self._start]

    def _keep(self, start: int, end: int) -> None:
        handle = self._handle
        if not handle.pieces:
            # A small one, or one that was written before there were pieces.
            self._start, self._kept = 0, self._whole()
            return
        first, last = start // PIECE, -(-end // PIECE)
        read_from, known = first * PIECE, b""
        if self._start <= read_from < self._start + len(self._kept):
            known = self._kept[read_from - self._start :]
        missing = read_from + len(known)
        stop = min(last * PIECE, handle.size)
        begins = range(missing, stop, CHUNK)
        chunks = [self._pieces(begin, min(begin + CHUNK, stop)) for begin in begins]
        self._start, self._kept = read_from, b"".join([known, *chunks])

    def _whole(self) -> bytes:
        data = self._store.read_segment(self._handle.path)
        self._handle.verify(data)
        return data

    def _pieces(self, start: int, stop: int) -> bytes:
        """The pieces from `start`, where one begins, to `stop`, where one ends."""
        handle = self._handle
        data = self._store.read_part(handle.path, start, stop - start)
        if len(data) < stop - start:
            raise CorruptCheckpointError(f"{handle.path} ends early: it is cut short")
        handle.verify_pieces(start // PIECE, data)
        return data


def keyed_files(
    handles: Iterable[SegmentHandle], store: SegmentStore, groups: range
) -> Iterator[VerifiedParts]:
    """Those of `handles` that are of keyed state and overlap with `groups`, to be read."""
    for handle in handles:
        if handle.first_group >= 0 and handle.overlaps(groups):
            yield VerifiedParts(handle, store)


def verified(handle: SegmentHandle, store: SegmentStore) -> Iterator[bytes]:
    """A segment from front to back; CorruptCheckpointError if it is missing or was altered.

    Only what is known to be damaged may be passed over: storage that does not answer just now is
    another error, or an older checkpoint would repeat what a newer one has committed.
    """
    try:
        yield from VerifiedParts(handle, store).chunks()
    except CorruptCheckpointError:
        raise
    except StorageError as error:
        if is_damage(error):
            raise CorruptCheckpointError(f"{handle.path} is missing") from error
        raise
