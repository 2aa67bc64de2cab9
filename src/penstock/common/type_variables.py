"""The type variables of functions, types and states.

They are for editors and type checkers, and cost nothing when a program runs. Each stands for Any
where a program names no types, so PyFlink's `class Count(KeyedProcessFunction)` stays as it is;
`class Count(KeyedProcessFunction[str, int, float])` says more.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from typing_extensions import TypeVar
else:
    import typing

    def TypeVar(name, *, default, **options):
        """A type variable without the default, which Python itself has from 3.13 on only."""
        return typing.TypeVar(name, **options)


T = TypeVar("T", default=Any)
K = TypeVar("K", default=Any)
V = TypeVar("V", default=Any)
IN = TypeVar("IN", default=Any)
ACC = TypeVar("ACC", default=Any)
OUT = TypeVar("OUT", default=Any)
KEY = TypeVar("KEY", default=Any)

# A type of bools is one of ints too.
T_co = TypeVar("T_co", covariant=True, default=Any)
R_co = TypeVar("R_co", covariant=True, default=Any)
T_contra = TypeVar("T_contra", contravariant=True, default=Any)
