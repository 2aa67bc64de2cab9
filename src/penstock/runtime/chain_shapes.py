"""Results of the wrong shape: what a function must not return where its result is used."""

from __future__ import annotations

from types import CoroutineType, GeneratorType
from typing import Any

from penstock.errors import ResultShapeError

WRONG_SHAPES = frozenset({str, bytes, dict})
"""What can be iterated over, and is not meant to be."""
LAZY = frozenset({GeneratorType, CoroutineType})
"""What is not a value yet."""


def refuse_shape(result: Any) -> None:
    """Raise for something in `WRONG_SHAPES`, in place of several records."""
    raise ResultShapeError(
        f"a {type(result).__name__} was returned where a list, a generator or None is expected; "
        "wrap it in a list to emit it as one record"
    )


def refuse_generator(result: Any) -> None:
    """ResultShapeError if a value was expected, and this is only going to be one."""
    if result.__class__ in LAZY:
        raise ResultShapeError(
            f"a {type(result).__name__} was returned where a value is expected; "
            "any(), all(), sum() or list() make one of a generator"
        )
