"""Assigners of windows that lie still: tumbling and sliding, by time and by count."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any, TypeVar

from penstock.common.typeinfo import Types
from penstock.errors import ProgramError
from penstock.runtime.windowing.assigners import WindowAssigner, WindowStagger
from penstock.runtime.windowing.checks import check_count, check_length, milliseconds
from penstock.runtime.windowing.serializers import (
    CountWindowSerializer,
    TimeWindowSerializer,
    TypeSerializer,
)
from penstock.runtime.windowing.triggers import (
    CountTrigger,
    EventTimeTrigger,
    ProcessingTimeTrigger,
    PurgingTrigger,
    Trigger,
)
from penstock.runtime.windowing.windows import CountWindow, TimeWindow
from penstock.state.descriptors import ValueStateDescriptor

T = TypeVar("T")


class FixedTimeWindows(WindowAssigner[T, TimeWindow]):
    """Windows of one size, a new one beginning every `slide` milliseconds, shifted by `offset`.

    With a slide that is larger than the size, records between two windows are in none.
    """

    def __init__(self, size: int, slide: int, offset: int, stagger: WindowStagger) -> None:
        name = type(self).__name__
        self.size = check_length(size, name, "size")
        self.slide = check_length(slide, name, "slide")
        self.offset = milliseconds(offset, name, "offset")
        if abs(self.offset) >= self.slide:
            raise ProgramError(
                f"{name}: the offset of {offset} ms must be less than the {slide} ms from one "
                "window to the next"
            )
        if not isinstance(stagger, WindowStagger):
            raise ProgramError(f"{name}: the stagger must be a WindowStagger, not {stagger!r}")
        self.stagger = stagger
        self._shift: int | None = 0 if stagger is WindowStagger.ALIGNED else None

    def _starts(self, timestamp: int, now: int) -> range:
        """The starts of the windows that hold `timestamp`, the latest first."""
        if self._shift is None:
            self._shift = self.stagger.get_stagger_offset(now, self.slide)
        last = timestamp - (timestamp - self.offset - self._shift) % self.slide
        return range(last, timestamp - self.size, -self.slide)

    def get_window_serializer(self) -> TypeSerializer[TimeWindow]:
        return TimeWindowSerializer()

    def __repr__(self) -> str:
        slide = "" if self.slide == self.size else f", slide={self.slide}"
        return f"{type(self).__name__}(size={self.size}{slide}, offset={self.offset})"


class _EventTimeWindows(FixedTimeWindows[T]):
    def assign_windows(
        self, element: T, timestamp: int, context: WindowAssigner.WindowAssignerContext
    ) -> Collection[TimeWindow]:
        starts = self._starts(timestamp, context.get_current_processing_time())
        return [TimeWindow(start, start + self.size) for start in starts]

    def get_default_trigger(self, env: Any) -> Trigger[T, TimeWindow]:
        return EventTimeTrigger()

    def is_event_time(self) -> bool:
        return True


class _ProcessingTimeWindows(FixedTimeWindows[T]):
    def assign_windows(
        self, element: T, timestamp: int, context: WindowAssigner.WindowAssignerContext
    ) -> Collection[TimeWindow]:
        now = context.get_current_processing_time()
        return [TimeWindow(start, start + self.size) for start in self._starts(now, now)]

    def get_default_trigger(self, env: Any) -> Trigger[T, TimeWindow]:
        return ProcessingTimeTrigger()

    def is_event_time(self) -> bool:
        return False


class TumblingEventTimeWindows(_EventTimeWindows[T]):
    """Windows of one size, one after another, by the timestamps of records."""

    def __init__(
        self, size: int, offset: int, window_stagger: WindowStagger = WindowStagger.ALIGNED
    ) -> None:
        super().__init__(size, size, offset, window_stagger)

    @staticmethod
    def of(
        size: Any, offset: Any = 0, window_stagger: WindowStagger = WindowStagger.ALIGNED
    ) -> TumblingEventTimeWindows[Any]:
        """Windows of `size`; a day in UTC+8 begins with `offset` of `Time.hours(-8)`."""
        return TumblingEventTimeWindows(_length(size), _length(offset), window_stagger)


class TumblingProcessingTimeWindows(_ProcessingTimeWindows[T]):
    """Windows of one size, one after another, by the clock."""

    def __init__(
        self, size: int, offset: int, window_stagger: WindowStagger = WindowStagger.ALIGNED
    ) -> None:
        super().__init__(size, size, offset, window_stagger)

    @staticmethod
    def of(
        size: Any, offset: Any = 0, window_stagger: WindowStagger = WindowStagger.ALIGNED
    ) -> TumblingProcessingTimeWindows[Any]:
        """Windows of `size`; a day in UTC+8 begins with `offset` of `Time.hours(-8)`."""
        return TumblingProcessingTimeWindows(_length(size), _length(offset), window_stagger)


class SlidingEventTimeWindows(_EventTimeWindows[T]):
    """Windows of one size, of which one begins every `slide`, by the timestamps of records."""

    def __init__(self, size: int, slide: int, offset: int) -> None:
        super().__init__(size, slide, offset, WindowStagger.ALIGNED)

    @staticmethod
    def of(size: Any, slide: Any, offset: Any = 0) -> SlidingEventTimeWindows[Any]:
        """The last `size`, every `slide`."""
        return SlidingEventTimeWindows(_length(size), _length(slide), _length(offset))


class SlidingProcessingTimeWindows(_ProcessingTimeWindows[T]):
    """Windows of one size, of which one begins every `slide`, by the clock."""

    def __init__(self, size: int, slide: int, offset: int) -> None:
        super().__init__(size, slide, offset, WindowStagger.ALIGNED)

    @staticmethod
    def of(size: Any, slide: Any, offset: Any = 0) -> SlidingProcessingTimeWindows[Any]:
        """The last `size`, every `slide`."""
        return SlidingProcessingTimeWindows(_length(size), _length(slide), _length(offset))


def _length(length: Any) -> int:
    """A length of time in milliseconds; None is none."""
    return milliseconds(0 if length is None else length, "window", "length")


class _CountWindows(WindowAssigner[T, CountWindow]):
    """Windows cut by the number of a key's records so far."""

    def __init__(self, state: str, window_size: int) -> None:
        self._size = check_count(window_size, type(self).__name__)
        self._counted = ValueStateDescriptor(state, Types.LONG())

    def _next(self, context: WindowAssigner.WindowAssignerContext) -> int:
        """The number of this record, from 0 on."""
        counted = context.get_runtime_context().get_state(self._counted)
        number: int = counted.value() or 0
        counted.update(number + 1)
        return number

    def get_default_trigger(self, env: Any) -> Trigger[T, CountWindow]:
        # A window that is full gets no more records: it would be kept for nothing.
        return PurgingTrigger(CountTrigger(self._size))

    def get_window_serializer(self) -> TypeSerializer[CountWindow]:
        return CountWindowSerializer()

    def is_event_time(self) -> bool:
        return False


class CountTumblingWindowAssigner(_CountWindows[T]):
    """Every so many records of a key make a window."""

    def __init__(self, window_size: int) -> None:
        super().__init__("tumble-count-assigner", window_size)

    @staticmethod
    def of(window_size: int) -> CountTumblingWindowAssigner[Any]:
        """Windows of so many records."""
        return CountTumblingWindowAssigner(window_size)

    def assign_windows(
        self, element: T, timestamp: int, context: WindowAssigner.WindowAssignerContext
    ) -> Collection[CountWindow]:
        return (CountWindow(self._next(context) // self._size),)

    def __repr__(self) -> str:
        return f"CountTumblingWindowAssigner({self._size})"


class CountSlidingWindowAssigner(_CountWindows[T]):
    """A window begins with every `window_slide`-th record of a key and fires when it is full."""

    def __init__(self, window_size: int, window_slide: int) -> None:
        super().__init__("slide-count-assigner", window_size)
        self._slide = check_count(window_slide, type(self).__name__, "slide")

    @staticmethod
    def of(window_size: int, window_slide: int) -> CountSlidingWindowAssigner[Any]:
        """Windows of so many records, one for every `slide` records."""
        return CountSlidingWindowAssigner(window_size, window_slide)

    def assign_windows(
        self, element: T, timestamp: int, context: WindowAssigner.WindowAssignerContext
    ) -> Collection[CountWindow]:
        number = self._next(context)
        last = number // self._slide
        first = max(0, (number - self._size) // self._slide + 1)
        return [CountWindow(window) for window in range(last, first - 1, -1)]

    def __repr__(self) -> str:
        return f"CountSlidingWindowAssigner({self._size}, {self._slide})"


def count_windows(size: int, slide: int) -> WindowAssigner[Any, Any]:
    """Windows of `size` records; with a slide, one that begins every so many records."""
    if slide == 0:
        return CountTumblingWindowAssigner(size)
    return CountSlidingWindowAssigner(size, slide)
