"""Assigners of sessions: windows that end when no record came for a while.

A record begins a session of its own, as long as the gap; sessions that overlap or touch are one.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Iterable
from typing import Any, TypeVar

from penstock.errors import ProgramError, ResultShapeError
from penstock.runtime.windowing.assigners import MergingWindowAssigner, WindowAssigner
from penstock.runtime.windowing.checks import check_length
from penstock.runtime.windowing.serializers import TimeWindowSerializer, TypeSerializer
from penstock.runtime.windowing.triggers import EventTimeTrigger, ProcessingTimeTrigger, Trigger
from penstock.runtime.windowing.windows import TimeWindow

T = TypeVar("T")


class SessionWindowTimeGapExtractor(ABC):
    """Says how long the gap after a record is."""

    @abstractmethod
    def extract(self, element: Any) -> int:
        """The gap in milliseconds; more than 0."""


class SessionWindows(MergingWindowAssigner[T, TimeWindow]):
    """Sessions, whose gap may be the same for all records or come from each."""

    @abstractmethod
    def gap_of(self, element: Any) -> int:
        """The gap after a record, in milliseconds."""

    def merge_windows(
        self,
        windows: Iterable[TimeWindow],
        callback: MergingWindowAssigner.MergeCallback[TimeWindow],
    ) -> None:
        TimeWindow.merge_windows(windows, callback)

    def get_window_serializer(self) -> TypeSerializer[TimeWindow]:
        return TimeWindowSerializer()


class _EventTime(SessionWindows[T]):
    def assign_windows(
        self, element: T, timestamp: int, context: WindowAssigner.WindowAssignerContext
    ) -> Collection[TimeWindow]:
        return (TimeWindow(timestamp, timestamp + self.gap_of(element)),)

    def get_default_trigger(self, env: Any) -> Trigger[T, TimeWindow]:
        return EventTimeTrigger()

    def is_event_time(self) -> bool:
        return True


class _ProcessingTime(SessionWindows[T]):
    def assign_windows(
        self, element: T, timestamp: int, context: WindowAssigner.WindowAssignerContext
    ) -> Collection[TimeWindow]:
        now = context.get_current_processing_time()
        return (TimeWindow(now, now + self.gap_of(element)),)

    def get_default_trigger(self, env: Any) -> Trigger[T, TimeWindow]:
        return ProcessingTimeTrigger()

    def is_event_time(self) -> bool:
        return False


class _FixedGap(SessionWindows[T]):
    def __init__(self, session_gap: int) -> None:
        self.session_gap = check_length(session_gap, type(self).__name__, "gap")

    def gap_of(self, element: Any) -> int:
        return self.session_gap

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.session_gap})"


class _DynamicGap(SessionWindows[T]):
    def __init__(
        self, session_window_time_gap_extractor: SessionWindowTimeGapExtractor | Callable[..., int]
    ) -> None:
        extractor = session_window_time_gap_extractor
        extract = getattr(extractor, "extract", extractor)
        if not callable(extract):
            raise ProgramError(
                f"{type(self).__name__} needs a SessionWindowTimeGapExtractor or a function, not "
                f"a {type(extractor).__name__}"
            )
        self._extract: Callable[[Any], int] = extract

    def gap_of(self, element: Any) -> int:
        gap = self._extract(element)
        if isinstance(gap, bool) or not isinstance(gap, int) or gap <= 0:
            raise ResultShapeError(
                f"the gap of a session must be a whole number of milliseconds above 0; the gap "
                f"function returned {gap!r}"
            )
        return gap

    def __repr__(self) -> str:
        return f"{type(self).__name__}()"


class DynamicEventTimeSessionWindows(_DynamicGap[T], _EventTime[T]):
    """Sessions by timestamps, whose gap each record has its own."""

    @staticmethod
    def with_dynamic_gap(extractor: Any) -> DynamicEventTimeSessionWindows[Any]:
        """The same with a gap that every record says."""
        return DynamicEventTimeSessionWindows(extractor)


class DynamicProcessingTimeSessionWindows(_DynamicGap[T], _ProcessingTime[T]):
    """Sessions by the clock, whose gap each record has its own."""

    @staticmethod
    def with_dynamic_gap(extractor: Any) -> DynamicProcessingTimeSessionWindows[Any]:
        """The same with a gap that every record says."""
        return DynamicProcessingTimeSessionWindows(extractor)


class EventTimeSessionWindows(_FixedGap[T], _EventTime[T]):
    """Sessions by timestamps, with one gap for all records."""

    @staticmethod
    def with_gap(size: Any) -> EventTimeSessionWindows[Any]:
        """A session ends after so much time without a record."""
        return EventTimeSessionWindows(check_length(size, "EventTimeSessionWindows", "gap"))

    @staticmethod
    def with_dynamic_gap(extractor: Any) -> DynamicEventTimeSessionWindows[Any]:
        """The same with a gap that every record says."""
        return DynamicEventTimeSessionWindows(extractor)


class ProcessingTimeSessionWindows(_FixedGap[T], _ProcessingTime[T]):
    """Sessions by the clock, with one gap for all records."""

    @staticmethod
    def with_gap(size: Any) -> ProcessingTimeSessionWindows[Any]:
        """A session ends after so much time without a record."""
        return ProcessingTimeSessionWindows(
            check_length(size, "ProcessingTimeSessionWindows", "gap")
        )

    @staticmethod
    def with_dynamic_gap(extractor: Any) -> DynamicProcessingTimeSessionWindows[Any]:
        """The same with a gap that every record says."""
        return DynamicProcessingTimeSessionWindows(extractor)
