"""Stored values as text for a terminal: lists by line, maps by entry, times as dates."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime, timezone
from typing import Any

from penstock.common.types import Row
from penstock.inspection.catalog import StateInfo
from penstock.inspection.shapes import WINDOW_KINDS, shape_of
from penstock.state.pickled import Pickled


def text_of(state: StateInfo, stored: Any, indent: str = "") -> str:
    """What a state holds for one key: a line, or lines with `indent` in front and a break first."""
    if isinstance(stored, Pickled):
        return repr(stored)
    shown = shape_of(state.kind, state.type_info).show(stored)
    kind = state.kind.removeprefix("expiring ")
    expires = kind != state.kind
    if kind == "timers":
        lines = [f"{timestamp} ({moment(timestamp)})" for timestamp in shown]
    elif state.kind in WINDOW_KINDS:
        lines = list(map(_window, shown))
    elif kind == "list":
        lines = [_value(item, expires) for item in shown]
    elif kind == "map":
        lines = [f"{key!r}: {_value(item, expires)}" for key, item in shown.items()]
    else:
        return _value(shown, expires)
    return "\n".join(_indented(lines, indent))


def _indented(lines: list[str], indent: str) -> Iterator[str]:
    if indent and lines:
        yield ""
    for line in lines:
        yield indent + line


def _value(shown: Any, expires: bool) -> str:
    if expires and isinstance(shown, Row):
        value, updated = shown
        return f"{value!r}, updated {updated} ({moment(updated)})"
    return repr(shown)


def _window(row: Row) -> str:
    start, end, contents = row
    if start is None:
        return f"the window of everything: {contents!r}"
    if end is None:
        return f"from {start} ({moment(start)}): {contents!r}"
    return f"from {start} to {end} ({moment(start)} to {moment(end)}): {contents!r}"


def moment(milliseconds: int) -> str:
    """A timestamp as a date, where it is one."""
    try:
        when = datetime.fromtimestamp(milliseconds / 1000, timezone.utc)
    except (OverflowError, ValueError, OSError):
        return "the end of time" if milliseconds > 0 else "the beginning of time"
    return f"{when:%Y-%m-%d %X}.{milliseconds % 1000:03d} UTC"
