"""Names of PyFlink that stand for something in Java: they say so, and what to use instead."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from penstock.errors import JavaOnlyError


def java_only(name: str, instead: str) -> Callable[..., Any]:
    """A method that raises JavaOnlyError; `instead` completes the sentence."""

    def refuse(self: Any, *args: Any, **kwargs: Any) -> Any:
        raise JavaOnlyError(f"{name}() means nothing without Java: {instead}")

    refuse.__name__ = name
    refuse.__doc__ = f"Not here: there is no Java behind it; {instead}."
    return refuse
