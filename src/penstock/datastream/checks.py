"""Checks of what a program hands to the API, so that a mistake is named where it is made."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

from penstock.errors import ProgramError


def need(value: Any, kind: type, what: str) -> None:
    """ProgramError unless `value` is a `kind`, which is what `what` needs."""
    if not isinstance(value, kind):
        article = "an" if kind.__name__[0] in "AEIOU" else "a"
        raise ProgramError(f"{what} needs {article} {kind.__name__}, not a {type(value).__name__}")


def refuse_generator(called: Any, what: str) -> None:
    """ProgramError if `called` yields: what it returns is the value itself."""
    if inspect.isgeneratorfunction(called):
        hint = ": use flat_map() for any number of records" if "map" in what else ""
        raise ProgramError(
            f"{what}() takes what its function returns, and a generator was given, which "
            f"yields{hint}"
        )


def need_callable(
    value: Any, method: str, what: str, may_yield: bool = False
) -> Callable[..., Any]:
    """The function that `value` is or has as `method`; ProgramError if it is neither."""
    bound = getattr(value, method, None)
    if isinstance(value, type) and bound is not None:
        raise ProgramError(
            f"{what}() needs an object, and the class {value.__name__} was given: "
            f"{value.__name__}() makes one"
        )
    if not may_yield:
        refuse_generator(value if bound is None else bound, what)
    if bound is not None:
        return bound  # type: ignore[no-any-return]
    if not callable(value):
        raise ProgramError(
            f"{what}() needs a function or an object with a method {method}, not a "
            f"{type(value).__name__}"
        )
    return value  # type: ignore[no-any-return]
