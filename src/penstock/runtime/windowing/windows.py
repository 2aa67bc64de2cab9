"""Windows: the buckets that records of a key are gathered in.

>>> TimeWindow(0, 10).intersects(TimeWindow(10, 20)), TimeWindow(0, 10).cover(TimeWindow(7, 20))
(True, TimeWindow(start=0, end=20))
>>> TimeWindow.get_window_start_with_offset(-1, 0, 10)
-10
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable
from operator import attrgetter
from typing import TYPE_CHECKING

from penstock import kept
from penstock.checkpoint.handles import MAX_WATERMARK

if TYPE_CHECKING:
    from penstock.runtime.windowing.assigners import MergingWindowAssigner


class Window(ABC):
    """A bucket of records. Windows are compared and hashed by what they are, and are pickled."""

    __slots__ = ()

    @abstractmethod
    def max_timestamp(self) -> int:
        """The largest timestamp that still belongs to it."""


@kept.named("TimeWindow", attrgetter("start", "end"))
class TimeWindow(Window):
    """The time from `start` up to, and without, `end`."""

    __slots__ = ("end", "start")

    def __init__(self, start: int, end: int) -> None:
        self.start = start
        self.end = end

    def max_timestamp(self) -> int:
        """The last millisecond before `end`."""
        return self.end - 1

    def intersects(self, other: TimeWindow) -> bool:
        """Whether they overlap or touch."""
        return self.start <= other.end and self.end >= other.start

    def cover(self, other: TimeWindow) -> TimeWindow:
        """The smallest window that holds both."""
        return TimeWindow(min(self.start, other.start), max(self.end, other.end))

    @staticmethod
    def get_window_start_with_offset(timestamp: int, offset: int, window_size: int) -> int:
        """The start of the window that `timestamp` falls into."""
        return timestamp - (timestamp - offset) % window_size

    @staticmethod
    def merge_windows(
        windows: Iterable[TimeWindow], callback: MergingWindowAssigner.MergeCallback[TimeWindow]
    ) -> None:
        """Tell `callback` which of `windows` overlap or touch, and what they are together."""
        group: list[TimeWindow] = []
        covered: TimeWindow | None = None
        for window in sorted(windows, key=lambda window: (window.start, window.end)):
            if covered is not None and covered.intersects(window):
                covered = covered.cover(window)
                group.append(window)
                continue
            if covered is not None and len(group) > 1:
                callback.merge(group, covered)
            group, covered = [window], window
        if covered is not None and len(group) > 1:
            callback.merge(group, covered)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, TimeWindow) and self.start == other.start and self.end == other.end

    def __lt__(self, other: TimeWindow) -> bool:
        return (self.start, self.end) < (other.start, other.end)

    def __le__(self, other: TimeWindow) -> bool:
        return (self.start, self.end) <= (other.start, other.end)

    def __hash__(self) -> int:
        return hash((self.start, self.end))

    def __repr__(self) -> str:
        return f"TimeWindow(start={self.start}, end={self.end})"


@kept.named("CountWindow", lambda window: (window.id,))
class CountWindow(Window):
    """The window of this number, of those that are cut by the count of records."""

    __slots__ = ("id",)

    def __init__(self, id: int) -> None:
        self.id = id

    def max_timestamp(self) -> int:
        """The end of time: it is not bounded by time."""
        return MAX_WATERMARK

    def __eq__(self, other: object) -> bool:
        return isinstance(other, CountWindow) and self.id == other.id

    def __hash__(self) -> int:
        return hash(self.id)

    def __repr__(self) -> str:
        return f"CountWindow(id={self.id})"


@kept.named("GlobalWindow", lambda window: ())
class GlobalWindow(Window):
    """The one window that holds everything."""

    __slots__ = ()

    @staticmethod
    def get() -> GlobalWindow:
        """The one there is."""
        return GlobalWindow()

    def max_timestamp(self) -> int:
        """The end of time."""
        return MAX_WATERMARK

    def __eq__(self, other: object) -> bool:
        return isinstance(other, GlobalWindow)

    def __hash__(self) -> int:
        return 0

    def __repr__(self) -> str:
        return "GlobalWindow"
