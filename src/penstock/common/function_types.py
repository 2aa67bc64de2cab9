"""What a type checker knows of functions: the method that is called, by its shape.

Descriptors of states ask for the method and not for the class, so that a method's own annotations
count also where the class names no types: what an aggregating state gives is what the method
`get_result` returns.
"""

from __future__ import annotations

from typing import Any, Protocol

from penstock.common.type_variables import R_co, T, T_contra


class Reduces(Protocol[T]):
    """As a ReduceFunction."""

    def reduce(self, value1: T, value2: T, /) -> T: ...


class Aggregates(Protocol[T_contra, R_co]):
    """As an AggregateFunction; the accumulator is its own affair."""

    def create_accumulator(self) -> Any: ...

    def add(self, value: T_contra, accumulator: Any, /) -> Any: ...

    def get_result(self, accumulator: Any, /) -> R_co: ...
