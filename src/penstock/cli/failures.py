"""A failed program in words: the user's own frames first, then what Penstock knows about it."""

from __future__ import annotations

import os
import traceback
from pathlib import Path

from penstock.errors import JobFailedError, UserFunctionError

_PACKAGE = f"{Path(__file__).parents[1]}{os.sep}"


def describe(error: BaseException) -> str:
    """What to print when a program ended with `error`."""
    cause = error.__cause__
    if isinstance(error, JobFailedError) and isinstance(cause, UserFunctionError):
        return f"{cause.user_traceback.rstrip()}\n  in {cause.origin}\n{error.summary()}\n"
    described = traceback.TracebackException.from_exception(error)
    _leave_out_our_frames(described)
    return "".join(described.format())


def _leave_out_our_frames(described: traceback.TracebackException) -> None:
    theirs = [frame for frame in described.stack if not frame.filename.startswith(_PACKAGE)]
    described.stack = traceback.StackSummary.from_list(theirs)
    for before in (described.__cause__, described.__context__):
        if before is not None:
            _leave_out_our_frames(before)
