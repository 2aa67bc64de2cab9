"""The id of a job."""

from __future__ import annotations


class JobID(str):
    """A job's id: 32 hexadecimal digits. It is a str, so that it can stand in a path or a URL."""

    __slots__ = ()
