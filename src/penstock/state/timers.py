"""Timers: keyed state with an order.

A timer is a timestamp under a key, at most one of each. The set of them is a state table, so it is
checkpointed, confirmed and restored like any other state; the heap beside it is only an index and
is rebuilt on restore. A removed timer stays in the heap until it comes up and is then passed over;
when more than half of the heap is such leftovers it is swept, so that memory follows the timers
that there are.

Most keys have one timer: the table holds a lone timestamp as it is, and several as a set.
"""

from __future__ import annotations

import heapq
from typing import Any

from penstock.common.keys import encode_key
from penstock.state.table import StateTable

KIND = "timers"
"""The kind of their tables."""
_SWEEP_FROM = 1024
"""A heap that is smaller is not worth sweeping."""


class TimerQueue:
    """The timers of one operator in one time domain, in timestamp order."""

    __slots__ = ("_changed", "_heap", "_order", "_pending", "_removed")

    def __init__(self, table: StateTable) -> None:
        self._pending: dict[Any, Any] = table.entries
        self._changed = table.changes.current
        self._removed = 0
        restored = [
            (timestamp, key)
            for key, pending in self._pending.items()
            for timestamp in (pending if pending.__class__ is set else (pending,))
        ]
        # A table comes back in the order of Python's hashes, which differ from process to process.
        restored.sort(key=lambda timer: (timer[0], encode_key(timer[1])))
        # The running number keeps keys, which may have no order, out of the comparison.
        self._heap: list[tuple[int, int, Any]] = [
            (timestamp, order, key) for order, (timestamp, key) in enumerate(restored)
        ]
        self._order = len(restored)

    def register(self, key: Any, timestamp: int) -> None:
        pending = self._pending.get(key)
        if pending is None:
            self._pending[key] = timestamp
        elif pending.__class__ is set:
            if timestamp in pending:
                return
            pending.add(timestamp)
        elif pending == timestamp:
            return
        else:
            self._pending[key] = {pending, timestamp}
        self._changed.add(key)
        self._order = order = self._order + 1
        heapq.heappush(self._heap, (timestamp, order, key))

    def delete(self, key: Any, timestamp: int) -> None:
        if self._remove(key, timestamp):
            self._removed += 1
            if self._removed * 2 > len(self._heap) > _SWEEP_FROM:
                self._sweep()

    def next_timestamp(self) -> int | None:
        """When the next timer is due; None if there is none."""
        heap = self._heap
        while heap:
            timestamp, _, key = heap[0]
            if self._has(key, timestamp):
                return timestamp
            heapq.heappop(heap)
            self._removed -= 1
        return None

    def pop_due(self, until: int) -> tuple[int, Any] | None:
        """Take the first timer that is due at `until`."""
        heap = self._heap
        while heap and heap[0][0] <= until:
            timestamp, _, key = heapq.heappop(heap)
            # `_remove`, spelled out: this is called for every timer that fires.
            pending = self._pending.get(key)
            if pending.__class__ is set:
                if timestamp in pending:
                    pending.remove(timestamp)
                    if not pending:
                        del self._pending[key]
                    self._changed.add(key)
                    return timestamp, key
            elif pending == timestamp:
                del self._pending[key]
                self._changed.add(key)
                return timestamp, key
            self._removed -= 1
        return None

    def _has(self, key: Any, timestamp: int) -> bool:
        pending = self._pending.get(key)
        if pending.__class__ is set:
            return timestamp in pending
        return bool(pending == timestamp)

    def _remove(self, key: Any, timestamp: int) -> bool:
        if not self._has(key, timestamp):
            return False
        pending = self._pending[key]
        if pending.__class__ is set:
            pending.remove(timestamp)
        if pending.__class__ is not set or not pending:
            del self._pending[key]
        self._changed.add(key)
        return True

    def _sweep(self) -> None:
        """Build the heap again without what was removed."""
        kept: dict[tuple[int, Any], int] = {}
        for timestamp, order, key in self._heap:
            # A timer that was removed and registered again is there twice.
            if self._has(key, timestamp):
                kept.setdefault((timestamp, key), order)
        self._heap = [(timestamp, order, key) for (timestamp, key), order in kept.items()]
        heapq.heapify(self._heap)
        self._removed = 0
