"""Evictors: what is taken out of a window before or after its function sees it.

With an evictor a window keeps all its records, also where it would reduce them one by one.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any, NamedTuple

from penstock import kept
from penstock.errors import ProgramError
from penstock.metrics import MetricGroup
from penstock.runtime.windowing.checks import check_count, check_length
from penstock.runtime.windowing.windows import Window


@kept.named("TimestampedValue", tuple)
class TimestampedValue(NamedTuple):
    """A record of a window and its timestamp; None if it has none."""

    value: Any
    timestamp: int | None


class Evictor(ABC):
    """Takes records out of a window."""

    class EvictorContext(ABC):
        """The time."""

        @abstractmethod
        def get_current_processing_time(self) -> int:
            """What the slot's clock shows, in milliseconds since the epoch."""

        @abstractmethod
        def get_metric_group(self) -> MetricGroup:
            """Where the evictor registers metrics."""

        @abstractmethod
        def get_current_watermark(self) -> int:
            """How far event time has come."""

    @abstractmethod
    def evict_before(
        self,
        elements: list[TimestampedValue],
        size: int,
        window: Window,
        evictor_context: Evictor.EvictorContext,
    ) -> None:
        """Remove from `elements` what the window function is not to see."""

    @abstractmethod
    def evict_after(
        self,
        elements: list[TimestampedValue],
        size: int,
        window: Window,
        evictor_context: Evictor.EvictorContext,
    ) -> None:
        """Remove from `elements` what the window is not to keep."""


class _OnceEvictor(Evictor):
    """An evictor that does its work either before or after the function."""

    def __init__(self, do_evict_after: bool) -> None:
        self._after = do_evict_after

    @abstractmethod
    def _evict(self, elements: list[TimestampedValue]) -> None: ...

    def evict_before(
        self,
        elements: list[TimestampedValue],
        size: int,
        window: Window,
        evictor_context: Evictor.EvictorContext,
    ) -> None:
        if not self._after:
            self._evict(elements)

    def evict_after(
        self,
        elements: list[TimestampedValue],
        size: int,
        window: Window,
        evictor_context: Evictor.EvictorContext,
    ) -> None:
        if self._after:
            self._evict(elements)


class CountEvictor(_OnceEvictor):
    """Keeps the last so many records."""

    def __init__(self, max_count: int, do_evict_after: bool = False) -> None:
        super().__init__(do_evict_after)
        self._max_count = check_count(max_count, "CountEvictor", "count")

    @staticmethod
    def of(max_count: int, do_evict_after: bool = False) -> CountEvictor:
        """Keep the last so many records."""
        return CountEvictor(max_count, do_evict_after)

    def _evict(self, elements: list[TimestampedValue]) -> None:
        del elements[: -self._max_count]


class TimeEvictor(_OnceEvictor):
    """Keeps the records of the last `window_size` before the newest timestamp."""

    def __init__(self, window_size: int, do_evict_after: bool = False) -> None:
        super().__init__(do_evict_after)
        self._size = check_length(window_size, "TimeEvictor", "window size")

    @staticmethod
    def of(window_size: Any, do_evict_after: bool = False) -> TimeEvictor:
        """Keep the records of the last so much time."""
        return TimeEvictor(window_size, do_evict_after)

    def _evict(self, elements: list[TimestampedValue]) -> None:
        timestamps = [e.timestamp for e in elements if e.timestamp is not None]
        if not timestamps:
            return
        oldest = max(timestamps) - self._size
        # A record without a timestamp has no age.
        elements[:] = [e for e in elements if e.timestamp is None or e.timestamp > oldest]


class DeltaEvictor(_OnceEvictor):
    """Keeps the records that differ from the last by less than a threshold."""

    def __init__(
        self,
        threshold: float,
        delta_function: Callable[[Any, Any], float],
        do_evict_after: bool = False,
    ) -> None:
        super().__init__(do_evict_after)
        delta = getattr(delta_function, "get_delta", delta_function)
        if not callable(delta):
            raise ProgramError(
                "DeltaEvictor needs a function of two records, or an object with get_delta, not "
                f"a {type(delta_function).__name__}"
            )
        self._threshold = threshold
        self._delta: Callable[[Any, Any], float] = delta

    @staticmethod
    def of(
        threshold: float,
        delta_function: Callable[[Any, Any], float],
        do_evict_after: bool = False,
    ) -> DeltaEvictor:
        """Keep the records within `threshold` of the last one."""
        return DeltaEvictor(threshold, delta_function, do_evict_after)

    def _evict(self, elements: list[TimestampedValue]) -> None:
        if elements:
            last = elements[-1].value
            elements[:] = [e for e in elements if self._delta(e.value, last) < self._threshold]
