"""What every declared type can do, and how a value that does not fit is reported."""

from __future__ import annotations

import reprlib
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import Any, Generic

from penstock.common.java_only import java_only
from penstock.common.type_variables import T_co
from penstock.errors import TypeMismatchError

Converter = Callable[[Any], Any]
"""Gives a value as its declared type has it; TypeMismatchError if it does not fit."""


class TypeInformation(ABC, Generic[T_co]):
    """The type of a record, a key or a state's value.

    To a type checker `Types.LONG()` is a `TypeInformation[int]`.

    Types are values: they compare, hash and pickle by what they declare.
    """

    @abstractmethod
    def converter(self) -> Converter | None:
        """A pure function from a user's value to a value of this type; None if any value will do.

        It keeps no reference to what can change in the value that it is given.
        """

    @abstractmethod
    def is_immutable(self) -> bool:
        """Whether no value of this type can change after it was made."""

    def need_conversion(self) -> bool:
        """Whether values must be converted, or at least checked."""
        return self.converter() is not None

    def to_internal_type(self, obj: Any) -> T_co:
        """`obj` as a value of this type; TypeMismatchError if it does not fit."""
        convert = self.converter()
        value: T_co = obj if convert is None else convert(obj)
        return value

    def from_internal_type(self, obj: Any) -> Any:
        """A value of this type as users see it: here they are the same."""
        return obj

    get_java_type_info = java_only("get_java_type_info", "use the TypeInformation itself")

    @abstractmethod
    def __str__(self) -> str: ...

    def __repr__(self) -> str:
        return str(self)


def mismatch(expected: object, value: Any, hint: str = "") -> TypeMismatchError:
    """The error for a value that is not what was expected."""
    got = "None" if value is None else type(value).__name__
    shown = None if value is None else shorten(value)
    return TypeMismatchError(f"expected {expected}, got {got}{hint}", shown=shown)


def blame(
    converters: Sequence[Converter | None],
    values: Sequence[Any],
    steps: Sequence[str],
    *,
    nullable: bool,
) -> TypeMismatchError:
    """The error of the first of several values that does not fit, with the step that leads to it.

    Values are converted without keeping track of the place; it is looked for when one failed.
    """
    for convert, value, step in zip(converters, values, steps, strict=True):
        try:
            if convert is not None and not (nullable and value is None):
                convert(value)
        except TypeMismatchError as error:
            return error.inside(step)
    raise AssertionError("a converter is not a pure function: its failure did not repeat")


def shorten(value: Any) -> str:
    """What a value looks like, in a line that is not too long, whatever it is."""
    try:
        return _SHORT.repr(value)
    except Exception:
        # A user's own `__repr__` raised, and must not hide what went wrong.
        return f"<{type(value).__name__}>"


_SHORT = reprlib.Repr()
_SHORT.maxstring = _SHORT.maxother = 60
