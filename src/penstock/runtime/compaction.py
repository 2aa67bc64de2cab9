"""Compaction at run time: off the loop, in small pieces, from files.

Uploads of checkpoints and other slow work of the slot take their turns between the pieces. Nothing
depends on a compaction: when storage fails it is given up, and the next checkpoint builds on the
segments that there are.
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Callable, Iterable
from typing import Any

from penstock.checkpoint.handles import SegmentHandle
from penstock.checkpoint.parts import keyed_files
from penstock.checkpoint.store import SegmentStore
from penstock.runtime.environment import IoExecutor
from penstock.runtime.segment_chain import Handles, SegmentChain
from penstock.runtime.segment_writing import write_segment
from penstock.state.compaction import Merge, Merging, spans_of
from penstock.state.keyed_parts import keyed_parts
from penstock.state.segments import Origin

log = logging.getLogger(__name__)

PIECE = 1 << 20
"""About so many bytes are merged at a time."""
LOT = 1 << 24
"""About so many bytes are read at a time, from all segments together: less would be many small
requests to the storage."""


class Compaction:
    """Merges some segments of one chain into one."""

    def __init__(
        self,
        chain: SegmentChain,
        store: SegmentStore,
        io: IoExecutor,
        groups: range,
        origin: Origin,
        compress: bool = False,
    ) -> None:
        self._chain = chain
        self._store = store
        self._io = io
        self._groups = groups
        self._origin = origin
        self._compress = compress

    def start(self, name: str, ships_files: bool = False) -> None:
        """Begin if there is something to merge; the result is stored as `name`."""
        chosen = self._chain.begin_compaction(ships_files)
        if chosen is None:
            return
        old, how = chosen

        def merge_on(merge: Merge) -> None:
            def stepped(more: bool) -> None:
                if more:
                    merge_on(merge)
                else:
                    self._then(old, lambda: self._write(name, merge), finished)

            self._then(old, lambda: merge.step(PIECE), stepped)

        def finished(new: SegmentHandle) -> None:
            self._chain.end_compaction(old, new)

        self._then(old, lambda: self._read(old, how), merge_on)

    def _then(self, old: Handles, work: Callable[[], Any], go_on: Callable[[Any], None]) -> None:
        """Do a piece off the loop, then `go_on` with its result, unless the attempt is over."""
        if self._chain.closed:
            return

        def done(result: Any, error: Exception | None) -> None:
            if error is None:
                go_on(result)
                return
            log.warning("segments could not be compacted, they stay as they are: %s", error)
            self._chain.end_compaction(old, None)

        self._io.submit(work, done)

    def _read(self, old: Handles, how: Merging) -> Merge:
        parts = list(keyed_parts(keyed_files(old, self._store, self._groups)))
        # Blocks that are only joined stay as they are, and in the order of their segments.
        spans: Iterable[range] = (self._groups,)
        if how is not Merging.JOINED:
            sizes: Counter[int] = Counter()
            for place in (place for part in parts for place in part.places):
                sizes[place.group] += place.size
            spans = spans_of(sizes, self._groups, LOT)
        return Merge(((b for part in parts for b in part.blocks(span)) for span in spans), how)

    def _write(self, name: str, merge: Merge) -> SegmentHandle:
        blocks = merge.blocks()
        return write_segment(self._store, name, blocks, self._groups, self._origin, self._compress)
