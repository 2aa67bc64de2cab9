"""Sliding windows in event time, computed from slices.

A window of an hour that slides by a minute is sixty slices of a minute, and its neighbour shares
all but one of them. So a record is added to one slice only, and a window's result is merged from
its slices; that needs contents that can be merged (see `Contents.associative`).

Merging all sixty for every window would cost as much as adding to sixty windows. Each key
therefore has a memory of merged parts, in two halves: for the older half the merges from each
slice up to a border, and for the newer half one merge of all that came since the border. A window
is one merge of the two. When the older half is used up, the border moves to the newest slice, and
each slice is merged once: on average some two merges for a window, however many slices it has.
The memory is only that: it is made again from the slices when it is missing or has become wrong.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from typing import Any

from penstock.runtime.functions import KeyedProcessFunction
from penstock.runtime.isolation import isolate
from penstock.runtime.windowing.emission import Result, refuse_untimed, result_of
from penstock.runtime.windowing.fixed_windows import FixedTimeWindows
from penstock.runtime.windowing.operator import WindowBase, WindowSpec
from penstock.runtime.windowing.windows import TimeWindow

_NOTHING = object()
_NUMBERS = frozenset({int, float})
"""Contents so common that a call for each of them is worth sparing: they need no copy."""


class _Memory:
    """The merged parts of one key. Windows are asked for in the order of time."""

    __slots__ = ("_merge", "_newer", "_older", "_width", "border", "newest")

    def __init__(self, merge: Callable[[Any, Any], Any], width: int) -> None:
        self._merge = merge
        self._width = width
        self._older: list[tuple[int, Any]] = []
        """Start of a slice, and the merge from it up to the border; the oldest is the last."""
        self._newer: Any = _NOTHING
        self.border = 0
        """The start of the first slice that is in neither half; set with the first window."""
        self.newest = 0
        """The start of the last slice that is in one."""

    # A user's merge may change what it is given, and all of this is needed again: hence `isolate`,
    # which leaves alone what cannot be changed.

    def merged(self, slices: dict[int, Any], start: int, end: int) -> Any:
        """The merge of all slices from `start` up to `end`."""
        older = self._older
        while older and older[-1][0] < start:
            older.pop()
        if not older:
            self._rebuild(slices, start, end)
            return isolate(older[-1][1])
        if end == self.border + self._width:
            # The commonest: one slice more.
            if self.border in slices:
                self._extend(slices, self.border)
        else:
            for added in sorted(_between(slices, self.border, end, self._width)):
                self._extend(slices, added)
        self.border = end
        one, other = older[-1][1], self._newer
        if one.__class__ not in _NUMBERS:
            one = isolate(one)
        if other is _NOTHING:
            return one
        return self._merge(one, other if other.__class__ in _NUMBERS else isolate(other))

    def _extend(self, slices: dict[int, Any], added: int) -> None:
        part, newer = slices[added], self._newer
        if part.__class__ not in _NUMBERS:
            part = isolate(part)
        self._newer = part if newer is _NOTHING else self._merge(newer, part)
        self.newest = added

    def _rebuild(self, slices: dict[int, Any], start: int, end: int) -> None:
        older, self._newer, self.border = self._older, _NOTHING, end
        merged: Any = _NOTHING
        for begin in sorted(_between(slices, start, end, self._width), reverse=True):
            part = isolate(slices[begin])
            merged = part if merged is _NOTHING else self._merge(part, isolate(merged))
            older.append((begin, merged))
        self.newest = older[0][0]


def _between(slices: dict[int, Any], start: int, end: int, width: int) -> Iterable[int]:
    """The slices that there are from `start` up to `end`, in any order."""
    if (end - start) // width < len(slices):
        return [begin for begin in range(start, end, width) if begin in slices]
    return [begin for begin in slices if start <= begin < end]


class SliceProcess(WindowBase):
    """Sliding event-time windows with the default trigger, no evictor and no lateness."""

    layout = "slices"

    def __init__(self, spec: WindowSpec) -> None:
        super().__init__(spec)
        assert isinstance(spec.assigner, FixedTimeWindows)
        self._size, self._slide = spec.assigner.size, spec.assigner.slide
        self._offset = spec.assigner.offset
        self._width = math.gcd(self._size, self._slide)

    def open(self, runtime_context: Any) -> None:
        super().open(runtime_context)
        self._fold = self.contents.folder()
        self._merge = self.contents.merger()
        self._memories: dict[Any, _Memory] = {}

    def process_element(
        self, value: Any, ctx: KeyedProcessFunction.Context
    ) -> Iterable[Result] | None:
        timestamp = ctx.timestamp()
        if timestamp is None:
            refuse_untimed()
        start = timestamp - (timestamp - self._offset) % self._width
        key = ctx.get_current_key()
        slices = self._entries.get(key)
        if slices is None or start not in slices:
            return self._first(key, start, value, timestamp, ctx)
        slices[start] = self._fold(slices[start], value)
        self._changed.add(key)
        if key in self._memories:
            self._forget(key, start)
        return None

    def _first(
        self, key: Any, start: int, value: Any, timestamp: int, ctx: KeyedProcessFunction.Context
    ) -> Iterable[Result] | None:
        times = ctx.timer_service()
        watermark = times.current_watermark()
        end = self._first_end(start, watermark)
        if end is None:
            return self._late.met(value, timestamp, watermark)
        contents = self.contents.first(value)
        slices = self._entries.get(key)
        if slices is None:
            self._entries[key] = {start: contents}
        else:
            slices[start] = contents
        self._changed.add(key)
        self._forget(key, start)
        times.register_event_time_timer(end - 1)
        return None

    def _forget(self, key: Any, start: int) -> None:
        """The slice at `start` has changed: a memory that has it is wrong now."""
        memory = self._memories.get(key)
        if memory is not None and start < memory.border:
            del self._memories[key]

    def _first_end(self, start: int, watermark: int) -> int | None:
        """The end of the first window with the slice that is still to fire; None: there is none."""
        # Windows begin at offset + n * slide: the last one that begins at or before the slice,
        # and those before it that still reach over it.
        last_end = start - (start - self._offset) % self._slide + self._size
        if last_end - 1 <= watermark:
            return None
        earliest = last_end - (last_end - start - self._width) // self._slide * self._slide
        if earliest - 1 > watermark:
            return earliest
        # The first one after the watermark: an end e with e - 1 > watermark.
        return earliest + -(-(watermark + 2 - earliest) // self._slide) * self._slide

    def on_timer(
        self, timestamp: int, ctx: KeyedProcessFunction.OnTimerContext
    ) -> Iterable[Result] | None:
        key = ctx.get_current_key()
        slices = self._entries[key]
        end = timestamp + 1
        start = end - self._size
        memory = self._memories.get(key)
        if memory is None:
            memory = self._memories[key] = _Memory(self._merge, self._width)
        merged = memory.merged(slices, start, end)
        for passed in range(start, start + self._slide, self._width):
            slices.pop(passed, None)
        self._changed.add(key)
        if memory.newest >= start + self._slide:
            ctx.timer_service().register_event_time_timer(timestamp + self._slide)
        elif slices:
            self._next(slices, end, ctx)
        else:
            del self._entries[key], self._memories[key]
        if self.emission is None:
            return result_of(self.contents.result(merged), timestamp)
        return self._final(key, TimeWindow(start, end), merged, ctx)

    def _next(
        self, slices: dict[int, Any], end: int, ctx: KeyedProcessFunction.OnTimerContext
    ) -> None:
        """Set the timer of the next window with a record: those without one do not fire."""
        following = self._first_end(min(slices), end - 1)
        assert following is not None, "a slice is kept as long as a window needs it"
        ctx.timer_service().register_event_time_timer(following - 1)
