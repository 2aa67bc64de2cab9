"""What an operator does, said as data.

These are the leaves of the tree that the API builds and the runtime compiles: an operator names
its user function and nothing about how it runs.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from penstock.connectors.sink import Sink
from penstock.connectors.source import Source


@dataclass(frozen=True)
class Operator:
    """An operator: one node of a program."""

    @property
    def kind(self) -> str:
        return type(self).__name__.removesuffix("Operator").lower()

    @property
    def keyed(self) -> bool:
        """Whether it sees its input by key, and so may hold keyed state."""
        return False


@dataclass(frozen=True)
class SourceOperator(Operator):
    source: Source


@dataclass(frozen=True)
class FunctionOperator(Operator):
    """An operator around one user function.

    ``function`` is what the user gave: a callable, or an object whose method ``method`` is meant
    and whose ``open`` and ``close`` are called around the run.
    """

    function: Any
    method: str | None

    def call(self) -> Callable[..., Any]:
        """The callable to apply to records."""
        if self.method is None:
            return self.function  # type: ignore[no-any-return]
        return getattr(self.function, self.method)  # type: ignore[no-any-return]


@dataclass(frozen=True)
class MapOperator(FunctionOperator):
    pass


@dataclass(frozen=True)
class FlatMapOperator(FunctionOperator):
    pass


@dataclass(frozen=True)
class FilterOperator(FunctionOperator):
    pass


@dataclass(frozen=True)
class KeyedOperator(FunctionOperator):
    """A function that is applied per key; the key is read off the record again where it runs."""

    key_selector: Callable[[Any], Any]

    @property
    def keyed(self) -> bool:
        return True


@dataclass(frozen=True)
class ReduceOperator(KeyedOperator):
    pass


@dataclass(frozen=True)
class ProcessOperator(KeyedOperator):
    pass


@dataclass(frozen=True)
class SinkOperator(Operator):
    sink: Sink
