"""What waits for asynchronous calls, and in which order it goes on.

Ordered: everything leaves in the order it came. Unordered: records leave when their calls end, but
not past a control element, so that a watermark still says what it says.

>>> queue = AsyncQueue(ordered=False)
>>> a, b, c = queue.add("a", 1), queue.add("b", 2), None
>>> queue.control("watermark"); c = queue.add("c", 3)
>>> c.end(["C"]); b.end(["B"]); queue.take()
[(['B'], 2, 'b')]
>>> queue.take() is None     # "a" is still out, and "c" is behind the watermark
True
>>> a.end(["A"]); queue.take(), queue.take(), queue.take()
([(['A'], 1, 'a')], 'watermark', [(['C'], 3, 'c')])
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from typing import Any

Completed = tuple[Any, "int | None", Any]
"""(results, timestamp, record)."""


class Call:
    """A record whose call is under way."""

    __slots__ = ("_ended", "results", "timestamp", "value")

    def __init__(self, value: Any, timestamp: int | None, ended: Callable[[Call], None]) -> None:
        self.value = value
        self.timestamp = timestamp
        self.results: Any = None
        self._ended = ended

    def end(self, results: Any) -> None:
        """The call is done."""
        self.results = results
        self._ended(self)

    def completed(self) -> Completed:
        """What goes on."""
        return self.results, self.timestamp, self.value


class _Segment:
    """The records between two control elements."""

    __slots__ = ("control", "pending", "ready")

    def __init__(self) -> None:
        self.pending: dict[Call, None] = {}
        self.ready: deque[Completed] = deque()
        self.control: Any = None


class AsyncQueue:
    """The calls of one operator."""

    def __init__(self, ordered: bool) -> None:
        self._ordered = ordered
        self._segments: deque[_Segment] = deque([_Segment()])
        self.size = 0
        """Records that are in it, their calls ended or not."""

    def add(self, value: Any, timestamp: int | None) -> Call:
        """A record's call begins."""
        segment = self._segments[-1]
        call = Call(value, timestamp, lambda ended: self._ended(segment, ended))
        segment.pending[call] = None
        self.size += 1
        return call

    def _ended(self, segment: _Segment, call: Call) -> None:
        if not self._ordered:
            del segment.pending[call]
            segment.ready.append(call.completed())
            return
        while segment.pending:
            first = next(iter(segment.pending))
            if first.results is None:
                return
            del segment.pending[first]
            segment.ready.append(first.completed())

    def control(self, element: Any) -> None:
        """A control element comes; it leaves behind everything before it."""
        self._segments[-1].control = element
        self._segments.append(_Segment())

    def has_ready(self) -> bool:
        """Whether `take` has something."""
        first = self._segments[0]
        return bool(first.ready) or (not first.pending and first.control is not None)

    def take(self) -> list[Completed] | Any | None:
        """What may go on: records with their results, or a control element; None: nothing yet."""
        first = self._segments[0]
        if first.ready:
            done = list(first.ready)
            first.ready.clear()
            self.size -= len(done)
            return done
        if first.pending or first.control is None:
            return None
        self._segments.popleft()
        return first.control

    def put_back(self, records: list[Completed]) -> None:
        """The last ones of what was just taken have to wait."""
        self._segments[0].ready.extendleft(reversed(records))
        self.size += len(records)

    def waiting(self) -> Iterator[tuple[Any, int | None]]:
        """The records in it, oldest first: what a checkpoint must hold."""
        for segment in self._segments:
            for _, timestamp, value in segment.ready:
                yield value, timestamp
            for call in segment.pending:
                yield call.value, call.timestamp
