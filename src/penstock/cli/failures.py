"""A failed program in words: the user's own frames first, then what Penstock knows about it."""

from __future__ import annotations

import concurrent.futures
import os
import traceback
from pathlib import Path

from penstock.errors import JobFailedError, PenstockError, UserFunctionError

_NOT_THEIRS = tuple(
    f"{folder}{os.sep}"
    for folder in (Path(__file__).parents[1], Path(concurrent.futures.__file__).parent)
)
"""Where frames are from that say nothing about the program: ours, and how results reach us."""


def describe(error: BaseException) -> str:
    """What to print when a program ended with `error`."""
    cause = error.__cause__
    if isinstance(error, JobFailedError) and isinstance(cause, UserFunctionError):
        return f"{cause.user_traceback.rstrip()}\n  in {cause.origin}\n{error.summary()}\n"
    described = traceback.TracebackException.from_exception(error)
    if isinstance(error, JobFailedError) and _is_one_line(cause):
        described.__cause__ = None  # the message of the failure has said it
    _leave_out_our_frames(described)
    return "".join(described.format())


def _is_one_line(cause: BaseException | None) -> bool:
    return isinstance(cause, PenstockError) and str(cause) == cause.summary()


def _leave_out_our_frames(described: traceback.TracebackException) -> None:
    theirs = [frame for frame in described.stack if not frame.filename.startswith(_NOT_THEIRS)]
    described.stack = traceback.StackSummary.from_list(theirs)
    for before in (described.__cause__, described.__context__):
        if before is not None:
            _leave_out_our_frames(before)
