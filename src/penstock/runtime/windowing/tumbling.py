"""Tumbling windows in event time that fire once: the commonest, and the fastest.

A key's windows are a dict from their starts to what they hold. A window that is there is open, so
a record for it costs two lookups and the user's function; only the first record of a window looks
at the watermark and sets a timer. A compiled chain does the former itself, see `Parts`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

from penstock.runtime.functions import KeyedProcessFunction
from penstock.runtime.windowing.emission import Result, refuse_untimed, result_of
from penstock.runtime.windowing.fixed_windows import FixedTimeWindows
from penstock.runtime.windowing.operator import WindowBase, WindowSpec
from penstock.runtime.windowing.windows import TimeWindow


class Parts(NamedTuple):
    """What it takes to add a record to a window, for a chain that spares itself the call.

    With `start = timestamp - (timestamp - offset) % size`: where `start in entries[key]`, that is
    `fold`ed with the record and `key` is `changed`; else `first` does what is to be done.
    """

    size: int
    offset: int
    entries: dict[Any, dict[int, Any]]
    changed: set[Any]
    fold: Callable[[Any, Any], Any]
    first: Callable[..., Iterable[Result] | None]
    """Of key, start, record, timestamp and context."""
    none_stays: bool
    """Whether what is None is not `fold`ed, and stays so."""


class TumblingProcess(WindowBase):
    """Tumbling event-time windows with the default trigger, no evictor and no lateness."""

    layout = "tumbling windows"

    def __init__(self, spec: WindowSpec) -> None:
        super().__init__(spec)
        assert isinstance(spec.assigner, FixedTimeWindows)
        self._size = spec.assigner.size
        self._offset = spec.assigner.offset

    def open(self, runtime_context: Any) -> None:
        super().open(runtime_context)
        self._fold = self.contents.folder()

    def parts(self) -> Parts:
        """To be asked for when it is open."""
        return Parts(
            self._size,
            self._offset,
            self._entries,
            self._changed,
            self._fold,
            self._first,
            self.contents.none_stays,
        )

    def process_element(
        self, value: Any, ctx: KeyedProcessFunction.Context
    ) -> Iterable[Result] | None:
        timestamp = ctx.timestamp()
        if timestamp is None:
            refuse_untimed()
        start = timestamp - (timestamp - self._offset) % self._size
        key = ctx.get_current_key()
        windows = self._entries.get(key)
        if windows is not None and start in windows:
            windows[start] = self.contents.fold(windows[start], value)
            self._changed.add(key)
            return None
        return self._first(key, start, value, timestamp, ctx)

    def _first(
        self, key: Any, start: int, value: Any, timestamp: int, ctx: KeyedProcessFunction.Context
    ) -> Iterable[Result] | None:
        times = ctx.timer_service()
        last, watermark = start + self._size - 1, times.current_watermark()
        if last <= watermark:
            return self._late.met(value, timestamp, watermark)
        contents = self.contents.first(value)
        windows = self._entries.get(key)
        if windows is None:
            self._entries[key] = {start: contents}
        else:
            windows[start] = contents
        self._changed.add(key)
        times.register_event_time_timer(last)
        return None

    def on_timer(
        self, timestamp: int, ctx: KeyedProcessFunction.OnTimerContext
    ) -> Iterable[Result] | None:
        key = ctx.get_current_key()
        windows = self._entries[key]
        end = timestamp + 1
        contents = windows.pop(end - self._size)
        if not windows:
            del self._entries[key]
        self._changed.add(key)
        if self.emission is None:
            return result_of(self.contents.result(contents), timestamp)
        return self._final(key, TimeWindow(end - self._size, end), contents, ctx)
