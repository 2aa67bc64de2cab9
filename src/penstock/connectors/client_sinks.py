"""Sinks whose records go to the client: collected for it, or printed in its terminal."""

from __future__ import annotations

import pickle
from types import GeneratorType
from typing import Any

from penstock.common.unpicklable import why
from penstock.connectors.sink import Sink, SinkWriter, WriterContext
from penstock.errors import RecordError

_BATCH = 256


class CollectSink(Sink):
    """Records are handed to the client once a checkpoint covers them, so none comes twice.

    Without checkpoints they are handed over at once.
    """

    def create_writer(self, context: WriterContext) -> SinkWriter:
        return _ClientWriter(context, transactional=True)


class PrintSink(Sink):
    """Records are printed by the client as they come; after a restart some may come again.

    `to_stderr` prints them to the standard error of the program instead of its output.
    """

    def __init__(self, identifier: str | None = None, to_stderr: bool = False) -> None:
        self._identifier = identifier
        self.to_stderr = to_stderr

    def create_writer(self, context: WriterContext) -> SinkWriter:
        return _PrintWriter(context, self._prefix(context))

    def _prefix(self, context: WriterContext) -> str:
        """As Flink prints it: identifier, and the subtask where there are several."""
        parts = [self._identifier] if self._identifier else []
        if context.parallelism > 1:
            parts.append(str(context.subtask + 1))
        return ":".join(parts) + "> " if parts else ""


class _ClientWriter(SinkWriter):
    def __init__(self, context: WriterContext, transactional: bool) -> None:
        self._context = context
        self._transactional = transactional
        self._values: list[Any] = []

    def write(self, value: Any) -> None:
        # Pickled now: the value may be changed in place before the batch leaves.
        try:
            self._values.append(pickle.dumps(value, protocol=5))
        except Exception as error:
            raise RecordError(
                f"a record cannot be sent to the client: {why(error)}", lasting=True
            ) from error
        if len(self._values) >= _BATCH:
            self.flush()

    def has_room(self) -> bool:
        return self._context.emit_room()

    def flush(self) -> None:
        if self._values:
            values, self._values = self._values, []
            self._context.emit(values, self._transactional)


class _PrintWriter(_ClientWriter):
    def __init__(self, context: WriterContext, prefix: str) -> None:
        super().__init__(context, transactional=False)
        self._prefix = prefix

    def write(self, value: Any) -> None:
        if isinstance(value, GeneratorType):
            raise RecordError(
                "a record is a generator, which cannot be printed: use flat_map() for the function "
                "that made it"
            )
        self._values.append(f"{self._prefix}{value}")
        if len(self._values) >= _BATCH:
            self.flush()
