"""Lengths of time and points in time, by PyFlink's names.

>>> Duration.of_seconds(5).to_millis(), Time.minutes(1).to_milliseconds()
(5000, 60000)
>>> Instant.of_epoch_milli(-1)
Instant(seconds=-1, nanos=999000000)
"""

from __future__ import annotations

from dataclasses import dataclass
from operator import attrgetter

from penstock import kept

__all__ = ["Duration", "Instant", "Time"]


@kept.named("Duration", lambda duration: (duration.nanos,))
@dataclass(frozen=True, order=True)
class Duration:
    """A length of time, to the nanosecond."""

    nanos: int = 0

    @staticmethod
    def of_days(days: int) -> Duration:
        """So many days of 24 hours."""
        return Duration.of_hours(24 * days)

    @staticmethod
    def of_hours(hours: int) -> Duration:
        """So many hours."""
        return Duration.of_minutes(60 * hours)

    @staticmethod
    def of_minutes(minutes: int) -> Duration:
        """So many minutes."""
        return Duration.of_seconds(60 * minutes)

    @staticmethod
    def of_seconds(seconds: int) -> Duration:
        """So many seconds."""
        return Duration.of_millis(1000 * seconds)

    @staticmethod
    def of_millis(millis: int) -> Duration:
        """So many milliseconds."""
        return Duration.of_nanos(1_000_000 * millis)

    @staticmethod
    def of_nanos(nanos: int) -> Duration:
        """So many nanoseconds."""
        return Duration(nanos)

    def to_millis(self) -> int:
        """Whole milliseconds, rounded down."""
        return self.nanos // 1_000_000


@kept.named("Instant", attrgetter("seconds", "nanos"))
@dataclass(frozen=True, order=True)
class Instant:
    """A point in time: seconds since the epoch, and nanoseconds (not negative) on top."""

    seconds: int
    nanos: int

    def to_epoch_milli(self) -> int:
        """Milliseconds since the epoch, rounded down."""
        return self.seconds * 1000 + self.nanos // 1_000_000

    @staticmethod
    def of_epoch_milli(epoch_milli: int) -> Instant:
        """The point so many milliseconds after the epoch."""
        seconds, millis = divmod(epoch_milli, 1000)
        return Instant(seconds, millis * 1_000_000)


@kept.named("Time", lambda time: (time.to_milliseconds(),))
class Time:
    """A length of time in milliseconds, for windows."""

    __slots__ = ("_milliseconds",)

    def __init__(self, milliseconds: int) -> None:
        self._milliseconds = milliseconds

    def to_milliseconds(self) -> int:
        """This length in milliseconds."""
        return self._milliseconds

    @staticmethod
    def milliseconds(milliseconds: int) -> Time:
        """So many milliseconds."""
        return Time(milliseconds)

    @staticmethod
    def seconds(seconds: int) -> Time:
        """So many seconds."""
        return Time(seconds * 1000)

    @staticmethod
    def minutes(minutes: int) -> Time:
        """So many minutes."""
        return Time.seconds(minutes * 60)

    @staticmethod
    def hours(hours: int) -> Time:
        """So many hours."""
        return Time.minutes(hours * 60)

    @staticmethod
    def days(days: int) -> Time:
        """So many days of 24 hours."""
        return Time.hours(days * 24)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Time) and self._milliseconds == other._milliseconds

    def __hash__(self) -> int:
        return hash(self._milliseconds)

    def __repr__(self) -> str:
        return f"Time({self._milliseconds})"
