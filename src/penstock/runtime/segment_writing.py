"""Writing a segment, and knowing it again."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

from penstock.checkpoint.handles import PIECE, SegmentHandle
from penstock.checkpoint.store import SegmentStore
from penstock.state.segments import GroupBlock, Origin, segment_parts


def write_segment(
    store: SegmentStore,
    name: str,
    blocks: Sequence[GroupBlock],
    groups: range,
    origin: Origin | None,
    compress: bool = False,
) -> SegmentHandle:
    """Store `blocks` as the segment `name`, compressed or not; slow."""
    parts = segment_parts(blocks, origin, compress)
    states = [(block.state, block.kind) for block in blocks]
    if sum(map(len, parts)) <= PIECE:
        return SegmentHandle.of(store.write_segment(name, *parts), parts, groups, states)
    # The checksums of many megabytes are made while the storage is waited for.
    with ThreadPoolExecutor(1, thread_name_prefix="penstock-checksums") as beside:
        described = beside.submit(SegmentHandle.of, "", parts, groups, states)
        path = store.write_segment(name, *parts)
    return replace(described.result(), path=path)
