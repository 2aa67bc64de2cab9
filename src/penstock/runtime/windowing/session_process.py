"""Sessions in event time that fire once, kept small: a million of them may be open.

A key's lone session is a tuple of start, end and contents; several are a list of those. A session
that grows does not move its timer: when the timer comes, it is set again for the end as it is then.
So a record costs no timer, and a busy key no memory.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from penstock.runtime.functions import KeyedProcessFunction
from penstock.runtime.windowing.emission import Result, refuse_untimed, result_of
from penstock.runtime.windowing.operator import WindowBase, WindowSpec
from penstock.runtime.windowing.sessions import SessionWindows
from penstock.runtime.windowing.windows import TimeWindow

Session = tuple[int, int, Any]


class SessionProcess(WindowBase):
    """Event-time sessions with the default trigger, no evictor and no lateness."""

    layout = "sessions"

    def __init__(self, spec: WindowSpec) -> None:
        super().__init__(spec)
        assert isinstance(spec.assigner, SessionWindows)
        self._gap_of = spec.assigner.gap_of

    def open(self, runtime_context: Any) -> None:
        super().open(runtime_context)
        self._fold = self.contents.folder()
        self._none_stays = self.contents.none_stays

    def process_element(
        self, value: Any, ctx: KeyedProcessFunction.Context
    ) -> Iterable[Result] | None:
        start = ctx.timestamp()
        if start is None:
            refuse_untimed()
        end = start + self._gap_of(value)
        key = ctx.get_current_key()
        held = self._entries.get(key)
        if held.__class__ is tuple and start <= held[1] and end >= held[0]:
            if start > held[0]:
                start = held[0]
            if end < held[1]:
                end = held[1]
            contents = held[2]
            if contents is not None or not self._none_stays:
                contents = self._fold(contents, value)
            self._entries[key] = (start, end, contents)
            self._changed.add(key)
            return None
        return self._place(key, held, start, end, value, ctx)

    def _place(
        self,
        key: Any,
        held: Any,
        start: int,
        end: int,
        value: Any,
        ctx: KeyedProcessFunction.Context,
    ) -> Iterable[Result] | None:
        """A record that begins a session, or belongs to one or more of several."""
        sessions = held if held.__class__ is list else [] if held is None else [held]
        touched = [s for s in sessions if start <= s[1] and end >= s[0]]
        if touched:
            contents = touched[0][2]
            for session in touched[1:]:
                contents = self.contents.merge(contents, session[2])
            contents = self.contents.fold(contents, value)
            start = min(start, touched[0][0])
            end = max(end, touched[-1][1])
        else:
            times = ctx.timer_service()
            watermark = times.current_watermark()
            if end - 1 <= watermark:
                return self._late.met(value, start, watermark)
            contents = self.contents.first(value)
            times.register_event_time_timer(end - 1)
        # Sessions that do not touch have an order.
        others = [s for s in sessions if not (start <= s[1] and end >= s[0])]
        before = [s for s in others if s[1] < start]
        self._keep(key, [*before, (start, end, contents), *others[len(before) :]])
        return None

    def _keep(self, key: Any, sessions: list[Session]) -> None:
        if len(sessions) > 1:
            self._entries[key] = sessions
        elif sessions:
            self._entries[key] = sessions[0]
        else:
            del self._entries[key]
        self._changed.add(key)

    def on_timer(
        self, timestamp: int, ctx: KeyedProcessFunction.OnTimerContext
    ) -> Iterable[Result] | None:
        key = ctx.get_current_key()
        held = self._entries.get(key)
        if held.__class__ is tuple:
            if held[1] - 1 > timestamp:
                ctx.timer_service().register_event_time_timer(held[1] - 1)
                return None
            del self._entries[key]
            self._changed.add(key)
            return self._ended(key, held, ctx)
        if held is None:
            # Its session was merged into another, which has ended.
            return None
        ended = [session for session in held if session[1] - 1 <= timestamp]
        going_on = held[len(ended) :]
        if going_on:
            ctx.timer_service().register_event_time_timer(going_on[0][1] - 1)
        if not ended:
            return None
        self._keep(key, going_on)
        return self._all_ended(key, ended, ctx)

    def _all_ended(
        self, key: Any, sessions: list[Session], ctx: KeyedProcessFunction.OnTimerContext
    ) -> Iterator[Result]:
        for session in sessions:
            yield from self._ended(key, session, ctx)

    def _ended(
        self, key: Any, session: Session, ctx: KeyedProcessFunction.OnTimerContext
    ) -> Iterable[Result]:
        start, end, contents = session
        if self.emission is None:
            return result_of(self.contents.result(contents), end - 1)
        return self._final(key, TimeWindow(start, end), contents, ctx)
