"""Timers of windows: a timer of the key, and the windows that asked for it.

The operator's timers are one per key and timestamp. Several windows of a key may wait for one
timestamp; which ones is keyed state beside the timer.

A watermark of T says that no record with timestamp T is to come; a clock that shows T does not. So
in processing time the timer is set for one millisecond later, when T has passed: a record that
comes in the last millisecond of its window is still in it.
"""

from __future__ import annotations

from typing import Any

from penstock.runtime.functions import TimerService
from penstock.runtime.windowing.windows import Window
from penstock.state.table import StateTable


class WindowTimers:
    """The timers of all windows of one operator, in both time domains."""

    def __init__(self, table: StateTable) -> None:
        self._entries = table.entries
        self._changed = table.changes.current
        self.service: TimerService

    def register(self, key: Any, window: Window, event_time: bool, timestamp: int) -> None:
        """Call for `window` at `timestamp`; once, however often it is registered."""
        waiting = self._entries.get(key)
        if waiting is None:
            waiting = self._entries[key] = {}
        windows = waiting.get((event_time, timestamp))
        if windows is None:
            waiting[event_time, timestamp] = [window]
            if event_time:
                self.service.register_event_time_timer(timestamp)
            else:
                self.service.register_processing_time_timer(timestamp + 1)
        elif window not in windows:
            windows.append(window)
        else:
            return
        self._changed.add(key)

    def delete(self, key: Any, window: Window, event_time: bool, timestamp: int) -> None:
        """Take back what `register` did."""
        waiting = self._entries.get(key)
        windows = None if waiting is None else waiting.get((event_time, timestamp))
        if waiting is None or windows is None or window not in windows:
            return
        windows.remove(window)
        self._changed.add(key)
        if windows:
            return
        self._forget(key, event_time, timestamp)
        if event_time:
            self.service.delete_event_time_timer(timestamp)
        else:
            self.service.delete_processing_time_timer(timestamp + 1)

    def take(self, key: Any, event_time: bool, timestamp: int) -> list[Window]:
        """The timer has fired: the windows that waited for it, in the order in which they came."""
        windows: list[Window] = self._entries[key][event_time, timestamp]
        self._forget(key, event_time, timestamp)
        self._changed.add(key)
        return windows

    def _forget(self, key: Any, event_time: bool, timestamp: int) -> None:
        waiting = self._entries[key]
        del waiting[event_time, timestamp]
        if not waiting:
            del self._entries[key]
