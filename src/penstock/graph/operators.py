"""What an operator does, said as data.

These are the leaves of the tree that the API builds and the runtime compiles: an operator names
its user function and nothing about how it runs.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from penstock.common.watermark_strategy import WatermarkStrategy
from penstock.connectors.sink import Sink
from penstock.connectors.source import Source
from penstock.errors import ProgramError


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
    """Where records come from; with a strategy they have timestamps and make watermarks."""

    source: Source
    strategy: WatermarkStrategy | None = None


@dataclass(frozen=True)
class TimestampsOperator(Operator):
    """Gives the records of a stream timestamps, and the stream watermarks, by a strategy."""

    strategy: WatermarkStrategy


@dataclass(frozen=True)
class FunctionOperator(Operator):
    """An operator around one user function.

    ``function`` is what the user gave: a callable, or an object whose method ``method`` is meant
    and whose ``open`` and ``close`` are called around the run. With a ``key_selector`` it is
    applied per key; the key is read off the record again where it runs.
    """

    function: Any
    method: str | None
    key_selector: Callable[[Any], Any] | None = None

    def __post_init__(self) -> None:
        if self.method is not None and isinstance(self.function, type):
            name = self.function.__name__
            raise ProgramError(
                f"{self.method}() needs an object, and the class {name} was given: "
                f"{name}() makes one"
            )

    @property
    def keyed(self) -> bool:
        return self.key_selector is not None

    @property
    def timed_results(self) -> bool:
        """Whether it gives triples (side output or None, record, timestamp) in place of records."""
        return False

    def call(self) -> Callable[..., Any]:
        """The callable to apply to records."""
        if self.method is None:
            return self.function  # type: ignore[no-any-return]
        return getattr(self.function, self.method)  # type: ignore[no-any-return]


@dataclass(frozen=True)
class MapOperator(FunctionOperator):
    """One record for one."""


@dataclass(frozen=True)
class FlatMapOperator(FunctionOperator):
    """Any number of records for one."""


@dataclass(frozen=True)
class FilterOperator(FunctionOperator):
    """The records for which the function is true."""


@dataclass(frozen=True)
class ReduceOperator(FunctionOperator):
    """A running reduction per key."""


@dataclass(frozen=True)
class ProcessOperator(FunctionOperator):
    """A function that is called with a context, has side outputs and, if keyed, timers."""


@dataclass(frozen=True)
class WindowOperator(ProcessOperator):
    """Windows of a key."""

    @property
    def timed_results(self) -> bool:
        return True


@dataclass(frozen=True)
class AsyncOperator(FunctionOperator):
    """A function that waits for something outside, many records at a time."""

    timeout_ms: int = 0
    capacity: int = 1
    ordered: bool = True
    retry: Any = None
    """An AsyncRetryStrategy."""


@dataclass(frozen=True)
class TwoInputOperator(FunctionOperator):
    """A function of two streams: ``method`` for records of the first, ``second_method`` else."""

    second_method: str = ""
    second_key_selector: Callable[[Any], Any] | None = None

    def second_call(self) -> Callable[..., Any]:
        return getattr(self.function, self.second_method)  # type: ignore[no-any-return]


@dataclass(frozen=True)
class CoMapOperator(TwoInputOperator):
    """One record for one, of either stream; where the function returns None there is none."""


@dataclass(frozen=True)
class CoFlatMapOperator(TwoInputOperator):
    """Any number of records for one, of either stream."""


@dataclass(frozen=True)
class CoProcessOperator(TwoInputOperator):
    """As ProcessOperator, for two streams."""


@dataclass(frozen=True)
class IntervalJoinOperator(CoProcessOperator):
    """Pairs of records that happened close to each other."""

    @property
    def timed_results(self) -> bool:
        return True


@dataclass(frozen=True)
class BroadcastProcessOperator(CoProcessOperator):
    """The second stream goes to every subtask and writes the broadcast state; the first reads."""

    states: tuple[str, ...] = ()
    """The names of the broadcast states."""


CONTEXT_OPERATORS = (ProcessOperator, CoProcessOperator)
"""Whose functions are called with a context and may have side outputs."""


@dataclass(frozen=True)
class SinkOperator(Operator):
    """The end of a stream."""

    sink: Sink
