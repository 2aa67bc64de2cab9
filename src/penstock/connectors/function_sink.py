"""A function as a sink: it is called with every record, and nothing can be taken back."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

from penstock.connectors.sink import Sink, SinkWriter, WriterContext
from penstock.errors import ProgramError


class SinkFunction(ABC):
    """A sink that is one method. Each subtask has an object of its own.

    With `CheckpointedFunction` it keeps operator state, and with `CheckpointListener` it hears what
    became of checkpoints: so it can hold records back until the checkpoint that covers them is
    complete, and still have them after a failure.
    """

    def open(self, context: WriterContext) -> None:
        """Called once, before the first record; `context` says where it runs."""

    @abstractmethod
    def invoke(self, value: Any) -> None:
        """Write one record."""

    def flush(self) -> None:
        """Write what was gathered: a checkpoint begins, the input has ended, or it is quiet."""

    def close(self) -> None:
        """Called once at the end, also after a failure."""


class FunctionSink(Sink):
    """Calls a function, or the method `invoke` of an object, with every record: at least once.

    The object need not be a `SinkFunction`; whichever of its methods it has are called.
    """

    def __init__(self, function: Any) -> None:
        if not callable(function) and not callable(getattr(function, "invoke", None)):
            raise ProgramError(
                "add_sink() needs a function or an object with a method invoke, not a "
                f"{type(function).__name__}"
            )
        self._function = function

    def create_writer(self, context: WriterContext) -> SinkWriter:
        return FunctionWriter(self._function, context)


class FunctionWriter(SinkWriter):
    """Calls the function of one subtask."""

    def __init__(self, function: Any, context: WriterContext) -> None:
        self.function = function
        self._context = context
        self._opened = False
        self._is_object = hasattr(function, "invoke")
        self._invoke = function.invoke if self._is_object else function

    def write(self, value: Any) -> None:
        self._invoke(value)

    def open(self) -> None:
        self._opened = True
        self._call("open", self._context)

    def flush(self) -> None:
        self._call("flush")

    def close(self) -> None:
        if self._opened:
            self._opened = False
            self._call("close")

    def _call(self, name: str, *arguments: Any) -> None:
        method = getattr(self.function, name, None) if self._is_object else None
        if method is not None:
            method(*arguments)
