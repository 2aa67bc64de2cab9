"""Names that PyFlink has removed and that programs still use: they work, with a warning."""

from __future__ import annotations

import functools
import warnings
from collections.abc import Callable
from typing import ParamSpec, TypeVar

P = ParamSpec("P")
R = TypeVar("R")


def deprecated(instead: str) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """Marks a method: each call warns, at the line of the caller, and says what to do instead."""

    def mark(method: Callable[P, R]) -> Callable[P, R]:
        @functools.wraps(method)
        def call(*args: P.args, **kwargs: P.kwargs) -> R:
            message = f"{method.__name__}() is deprecated: {instead}"
            warnings.warn(message, DeprecationWarning, stacklevel=2)
            return method(*args, **kwargs)

        return call

    return mark
