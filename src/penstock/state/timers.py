"""Timers: keyed state with an order.

A timer is a timestamp under a key, at most one of each. The set of them is a state table, so it is
checkpointed, confirmed and restored like any other state; the heap beside it is only an index and
is rebuilt on restore. A removed timer stays in the heap until it comes up and is then passed over.
"""

from __future__ import annotations

import heapq
from typing import Any

from penstock.common.keys import encode_key
from penstock.state.table import StateTable


class TimerQueue:
    """The timers of one operator in one time domain, in timestamp order."""

    def __init__(self, table: StateTable) -> None:
        self._pending: dict[Any, set[int]] = table.entries
        self._changed = table.changes.current
        self._order = 0
        self._heap: list[tuple[int, int, Any]] = []
        restored = [(t, key) for key, timestamps in self._pending.items() for t in timestamps]
        # A table comes back in the order of Python's hashes, which differ from process to process.
        for timestamp, key in sorted(restored, key=lambda timer: (timer[0], encode_key(timer[1]))):
            self._push(timestamp, key)

    def _push(self, timestamp: int, key: Any) -> None:
        # The running number keeps keys, which may have no order, out of the comparison.
        self._order += 1
        heapq.heappush(self._heap, (timestamp, self._order, key))

    def register(self, key: Any, timestamp: int) -> None:
        timestamps = self._pending.setdefault(key, set())
        if timestamp not in timestamps:
            timestamps.add(timestamp)
            self._changed.add(key)
            self._push(timestamp, key)

    def delete(self, key: Any, timestamp: int) -> None:
        timestamps = self._pending.get(key)
        if timestamps is not None and timestamp in timestamps:
            timestamps.discard(timestamp)
            self._changed.add(key)
            if not timestamps:
                del self._pending[key]

    def next_timestamp(self) -> int | None:
        """When the next timer is due; None if there is none."""
        heap = self._heap
        while heap:
            timestamp, _, key = heap[0]
            if timestamp in self._pending.get(key, ()):
                return timestamp
            heapq.heappop(heap)
        return None

    def pop_due(self, until: int) -> tuple[int, Any] | None:
        """Take the first timer that is due at `until`."""
        due = self.next_timestamp()
        if due is None or due > until:
            return None
        timestamp, _, key = heapq.heappop(self._heap)
        self.delete(key, timestamp)
        return timestamp, key
