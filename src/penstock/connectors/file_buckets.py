"""Buckets: the folder below a file sink's directory that a record belongs to."""

from __future__ import annotations

import datetime
import re
import zoneinfo
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any

from penstock.common.clock import Clock
from penstock.errors import ProgramError, RecordError

_PATTERN = re.compile(r"'((?:[^']|'')*)'|([A-Za-z])\2*|[^A-Za-z']+")
_LONGEST_NAME = 255
_LONGEST_PATH = 512
"""In bytes. S3 takes 1024 for a whole name: this leaves room for the base path and the file."""
_FIELDS = {
    "yyyy": "%Y",
    "uuuu": "%Y",
    "yy": "%y",
    "MM": "%m",
    "dd": "%d",
    "DDD": "%j",
    "HH": "%H",
    "mm": "%M",
    "ss": "%S",
}


@dataclass(frozen=True)
class BucketContext:
    """What an assigner may know besides the record."""

    clock: Clock

    def current_processing_time(self) -> int:
        """Milliseconds since the epoch."""
        return self.clock.now_ms()


class BucketAssigner(ABC):
    """Says which folder a record goes to; subclass it for buckets by content."""

    @abstractmethod
    def get_bucket_id(self, element: Any, context: BucketContext) -> str:
        """A path below the sink's directory; an empty string is the directory itself."""

    @staticmethod
    def base_path_bucket_assigner() -> BucketAssigner:
        """All records to the directory itself."""
        return BasePathBucketAssigner()

    @staticmethod
    def date_time_bucket_assigner(
        format_str: str = "yyyy-MM-dd--HH", timezone_id: str | None = None
    ) -> BucketAssigner:
        """By processing time, in Java's notation; in the machine's time zone if none is named."""
        return DateTimeBucketAssigner(format_str, timezone_id)


class BasePathBucketAssigner(BucketAssigner):
    """All records to the directory itself."""

    def get_bucket_id(self, element: Any, context: BucketContext) -> str:
        return ""


class DateTimeBucketAssigner(BucketAssigner):
    """By processing time."""

    def __init__(self, format_str: str, timezone_id: str | None) -> None:
        self._format = _to_strftime(format_str)
        self._zone = timezone_id
        _zone(timezone_id)
        self._second = -1
        self._bucket = ""

    def get_bucket_id(self, element: Any, context: BucketContext) -> str:
        second = context.current_processing_time() // 1000
        if second != self._second:
            moment = datetime.datetime.fromtimestamp(second, _zone(self._zone))
            self._second, self._bucket = second, moment.strftime(self._format)
        return self._bucket


def _zone(name: str | None) -> datetime.tzinfo | None:
    if name is None:
        return None
    try:
        return zoneinfo.ZoneInfo(name)
    except (zoneinfo.ZoneInfoNotFoundError, ValueError) as error:
        raise ProgramError(f"there is no time zone {name}") from error


def _to_strftime(pattern: str) -> str:
    """Java's pattern of a date in Python's notation."""
    if not pattern or "".join(match[0] for match in _PATTERN.finditer(pattern)) != pattern:
        raise ProgramError(f"{pattern!r} is not a pattern of a date")
    made = []
    for match in _PATTERN.finditer(pattern):
        token, quoted = match[0], match[1]
        if quoted is not None:
            made.append((quoted or "'").replace("''", "'").replace("%", "%%"))
        elif token[0].isalpha():
            if token not in _FIELDS:
                known = ", ".join(_FIELDS)
                raise ProgramError(f"{token} in the pattern {pattern!r} is not one of {known}")
            made.append(_FIELDS[token])
        else:
            made.append(token.replace("%", "%%"))
    return "".join(made)


def checked_bucket(bucket: Any) -> str:
    """`bucket` if it is a path below the directory that its readers will look into.

    Asked before the first record of a bucket is written: once a checkpoint covers a file there is
    no way back, and it must be possible to make it visible.
    """
    if not isinstance(bucket, str):
        raise RecordError(f"a bucket is a string, not a {type(bucket).__name__}")
    if not bucket:
        return bucket
    if not bucket.isprintable():
        # Also half characters, which no file system can be told.
        raise RecordError(f"the bucket {bucket!r} has characters that cannot be printed")
    parts = bucket.split("/")
    if any(part in ("", ".", "..") for part in parts):
        raise RecordError(f"the bucket {bucket!r} is not a path below the sink's directory")
    if any(part.startswith(".") or (part.startswith("_") and "=" not in part) for part in parts):
        raise RecordError(
            f"the bucket {bucket!r} would not be read: Spark and others pass over folders whose "
            "names begin with a dot or an underscore"
        )
    longest = max(len(part.encode()) for part in parts)
    if longest > _LONGEST_NAME or len(bucket.encode()) > _LONGEST_PATH:
        raise RecordError(
            f"the bucket {bucket[:40]!r}... is too long: a path has at most {_LONGEST_PATH} bytes, "
            f"and a name in it {_LONGEST_NAME}"
        )
    return bucket
