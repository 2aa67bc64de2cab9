"""Writing blocks of state as a segment."""

from __future__ import annotations

from collections.abc import Sequence

from penstock.checkpoint.handles import SegmentHandle
from penstock.checkpoint.segment_writing import store_segment
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
    states = [(block.state, block.kind) for block in blocks]
    return store_segment(store, name, segment_parts(blocks, origin, compress), groups, states)
