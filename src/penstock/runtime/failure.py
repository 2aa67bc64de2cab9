"""From an exception in a slot to what its author needs to see: their frames, and where it was."""

from __future__ import annotations

import traceback
from types import TracebackType

from penstock.errors import (
    FailureOrigin,
    PenstockError,
    RecordError,
    ResultShapeError,
    TypeMismatchError,
    UnsupportedKeyError,
    UserFunctionError,
)
from penstock.runtime.chain import CompiledChain
from penstock.runtime.chain_text import Place

_SHOWN_RECORD = 200


def explain(
    error: BaseException,
    chain: CompiledChain | None,
    subtask: int,
    parallelism: int,
    redact: bool,
    vertex: str | None = None,
) -> PenstockError:
    """`error`, raised while `chain` of `vertex` ran, as something that can be sent and shown."""
    found = _find(error.__traceback__, chain)
    stopped = _stop_iteration(error)
    if stopped is not None:
        found, error = _find(stopped.__traceback__, chain) or found, stopped
    if found is None:
        if isinstance(error, RecordError) and redact:
            return error.redacted()
        if isinstance(error, PenstockError):
            return error
        user_tb = user_frames(error.__traceback__)
        if vertex is None or user_tb is None:
            return _internal(error)
        # A user's function that is called outside the loop: by a reader, for example.
        return user_error(error, user_tb, FailureOrigin(vertex, subtask, parallelism))
    place, frame_tb = found
    origin = FailureOrigin(place.node.name, subtask, parallelism, _record(place, frame_tb, redact))
    inner_tb = frame_tb.tb_next
    if isinstance(error, TypeMismatchError):
        return _mismatch(error, place, inner_tb, origin, redact)
    if isinstance(error, PenstockError) and not isinstance(error, UserFunctionError):
        return located_in(error, origin)
    if inner_tb is None and place.action == "route":
        return UnsupportedKeyError(f"a key cannot be used: {error}; in {origin}")
    if inner_tb is None and place.action == "iterate" and _not_iterable(error):
        return ResultShapeError(
            f"a function returned something that is not a list, a generator or None: {error}; "
            f"in {origin}"
        )
    own_tb = user_frames(stopped.__traceback__ if stopped is not None else inner_tb)
    return user_error(error, own_tb or inner_tb, origin)


def _stop_iteration(error: BaseException) -> StopIteration | None:
    """The StopIteration of a user's function, which Python replaces where a generator calls it."""
    cause = error.__cause__
    replaced = isinstance(error, RuntimeError) and str(error).endswith("raised StopIteration")
    return cause if replaced and isinstance(cause, StopIteration) else None


def user_frames(tb: TracebackType | None) -> TracebackType | None:
    """`tb` from the first frame that is not Penstock's; None if all are."""
    while tb is not None and _is_ours(tb):
        tb = tb.tb_next
    return tb


def _is_ours(tb: TracebackType) -> bool:
    package = tb.tb_frame.f_globals.get("__name__", "").partition(".")[0]
    return package == "penstock" or tb.tb_frame.f_code.co_filename.startswith("<chain ")


def _not_iterable(error: BaseException) -> bool:
    # An iterator written in C, such as `map`, raises without a frame too, but not this.
    return isinstance(error, TypeError) and str(error).endswith("object is not iterable")


def user_error(
    error: BaseException, user_tb: TracebackType | None, origin: FailureOrigin
) -> UserFunctionError:
    """A user function raised `error`; `user_tb` starts at its own first frame."""
    lines = traceback.format_exception(type(error), error, user_tb)
    message = "".join(traceback.format_exception_only(type(error), error)).strip()
    return UserFunctionError(message, "".join(lines), origin)


def _find(
    tb: TracebackType | None, chain: CompiledChain | None
) -> tuple[Place, TracebackType] | None:
    if chain is None:
        return None
    while tb is not None:
        if tb.tb_frame.f_code.co_filename == chain.filename:
            place = chain.places.get(tb.tb_lineno)
            return None if place is None else (place, tb)
        tb = tb.tb_next
    return None


def _record(place: Place, tb: TracebackType, redact: bool) -> str | None:
    if place.record is None or place.record not in tb.tb_frame.f_locals:
        return None
    if redact:
        return "(redacted)"
    try:
        text = repr(tb.tb_frame.f_locals[place.record])
    except Exception as error:
        return f"(its repr failed: {error})"
    if len(text) <= _SHOWN_RECORD:
        return text
    return f"{text[:_SHOWN_RECORD]}... ({len(text)} characters)"


def located_in(error: PenstockError, origin: FailureOrigin) -> PenstockError:
    """`error` with the place where it arose."""
    located = type(error)(f"{error.message}; in {origin}")
    located.lasting = error.lasting
    return located.with_traceback(None)


def _mismatch(
    error: TypeMismatchError,
    place: Place,
    inner_tb: TracebackType | None,
    origin: FailureOrigin,
    redact: bool,
) -> PenstockError:
    # A path may name keys of the user's, so it goes where the value goes.
    text = error.message if redact else str(error)
    if place.action == "convert":
        text += "; the function's result is not of the type that was declared"
    elif place.action == "key_by":
        text += "; the key is not of the type that was declared"
    lines = traceback.extract_tb(user_frames(inner_tb))
    line = f" at {lines[0].filename}:{lines[0].lineno}" if lines else ""
    return TypeMismatchError(f"{text}; in {origin}{line}")


def _internal(error: BaseException) -> PenstockError:
    text = "".join(traceback.format_exception(type(error), error, error.__traceback__))
    return PenstockError(f"{type(error).__name__}: {error}\n{text}")
