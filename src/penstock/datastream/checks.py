"""Checks of what a program hands to the API, so that a mistake is named where it is made."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from penstock.errors import ProgramError


def need(value: Any, kind: type, what: str) -> None:
    """ProgramError unless `value` is a `kind`, which is what `what` needs."""
    if not isinstance(value, kind):
        article = "an" if kind.__name__[0] in "AEIOU" else "a"
        raise ProgramError(f"{what} needs {article} {kind.__name__}, not a {type(value).__name__}")


def need_callable(value: Any, method: str, what: str) -> Callable[..., Any]:
    """The function that `value` is or has as `method`; ProgramError if it is neither."""
    bound = getattr(value, method, None)
    if bound is not None:
        return bound  # type: ignore[no-any-return]
    if not callable(value):
        raise ProgramError(
            f"{what}() needs a function or an object with a method {method}, not a "
            f"{type(value).__name__}"
        )
    return value  # type: ignore[no-any-return]
