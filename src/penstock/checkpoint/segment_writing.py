"""Writing a segment, and knowing it again, without having all of it in memory."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor

from penstock.checkpoint.checksums import PIECE, Checksums
from penstock.checkpoint.handles import SegmentHandle
from penstock.checkpoint.store import SegmentStore


def store_segment(
    store: SegmentStore,
    name: str,
    parts: Iterable[bytes],
    groups: range,
    states: Iterable[tuple[str, str]] = (),
) -> SegmentHandle:
    """Store the parts, one after another, as the segment `name`; slow.

    A part is let go when it is written.
    """
    checksums = Checksums()
    with ThreadPoolExecutor(1, thread_name_prefix="penstock-checksums") as beside:
        path = store.write_segment(name, _counted(parts, checksums, beside))
    return SegmentHandle.known(path, checksums, groups, states)


def _counted(
    parts: Iterable[bytes], checksums: Checksums, beside: ThreadPoolExecutor
) -> Iterator[bytes]:
    """The parts as they are; their checksums are made while the storage is waited for."""
    under_way: Future[None] | None = None
    lot: list[bytes] = []
    size = 0
    for part in parts:
        lot.append(part)
        size += len(part)
        if size >= PIECE:
            if under_way is not None:
                under_way.result()
            under_way = beside.submit(checksums.add, *lot)
            lot, size = [], 0
        yield part
    if under_way is not None:
        under_way.result()
    checksums.add(*lot)
