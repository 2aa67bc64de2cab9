"""Dates, times of day and points in time.

As in PyFlink the SQL types know neither zones nor anything below a millisecond: what is below is
cut off, and a zone is dropped, so that the reading of the clock stays.

>>> import datetime
>>> from penstock.common.typeinfo import Types
>>> Types.SQL_TIME().to_internal_type(datetime.time(12, 0, 0, 1999))
datetime.time(12, 0, 0, 1000)
"""

from __future__ import annotations

import datetime
from dataclasses import dataclass
from typing import Any

from penstock.common.time import Instant
from penstock.common.type_variables import T_co
from penstock.common.typeinfo.base import Converter, TypeInformation, mismatch


@dataclass(frozen=True, repr=False)
class SqlTimeTypeInfo(TypeInformation[T_co]):
    """A DATE, a TIME of day, or a TIMESTAMP (both together)."""

    kind: str

    def converter(self) -> Converter | None:
        return _CONVERTERS[self.kind]

    def is_immutable(self) -> bool:
        return True

    def __str__(self) -> str:
        return f"SQL_{self.kind}"


@dataclass(frozen=True, repr=False)
class InstantTypeInfo(TypeInformation[Instant]):
    """A `penstock.common.Instant`."""

    def converter(self) -> Converter | None:
        return _instant

    def is_immutable(self) -> bool:
        return True

    def __str__(self) -> str:
        return "INSTANT"


def _date(value: Any) -> datetime.date:
    if isinstance(value, datetime.datetime):
        return value.date()
    if isinstance(value, datetime.date):
        return value
    raise mismatch("SQL_DATE (a datetime.date)", value)


def _time(value: Any) -> datetime.time:
    if isinstance(value, datetime.time):
        whole = value.microsecond // 1000 * 1000
        return value.replace(microsecond=whole, tzinfo=None, fold=0)
    raise mismatch("SQL_TIME (a datetime.time)", value)


def _timestamp(value: Any) -> datetime.datetime:
    if isinstance(value, datetime.datetime):
        whole = value.microsecond // 1000 * 1000
        return value.replace(microsecond=whole, tzinfo=None, fold=0)
    raise mismatch("SQL_TIMESTAMP (a datetime.datetime)", value)


def _instant(value: Any) -> Instant:
    if isinstance(value, Instant):
        return value
    raise mismatch("INSTANT (a penstock.common.Instant)", value)


_CONVERTERS: dict[str, Converter] = {"DATE": _date, "TIME": _time, "TIMESTAMP": _timestamp}
