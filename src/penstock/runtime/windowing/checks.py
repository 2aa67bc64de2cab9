"""Checks of lengths and counts, where a program states them."""

from __future__ import annotations

from typing import Any

from penstock.common.time import Duration, Time
from penstock.errors import ProgramError


def milliseconds(length: Any, whose: str, what: str) -> int:
    """A Time, a Duration or a number of milliseconds, in milliseconds."""
    if isinstance(length, Time):
        length = length.to_milliseconds()
    elif isinstance(length, Duration):
        length = length.to_millis()
    if isinstance(length, bool) or not isinstance(length, int):
        raise ProgramError(
            f"{whose}: the {what} must be a Time or whole milliseconds, not {length!r}"
        )
    return length


def check_length(length: Any, whose: str, what: str) -> int:
    """The same; it must be at least a millisecond."""
    ms = milliseconds(length, whose, what)
    if ms <= 0:
        raise ProgramError(f"{whose}: the {what} must be more than 0 milliseconds, not {ms}")
    return ms


def check_count(count: Any, whose: str, what: str = "size") -> int:
    """A number of records, at least one."""
    if isinstance(count, bool) or not isinstance(count, int) or count < 1:
        raise ProgramError(f"{whose}: the {what} must be a whole number from 1 on, not {count!r}")
    return count
