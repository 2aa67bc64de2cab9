"""Sinks whose records go to the client: collected for it, or printed in its terminal."""

from __future__ import annotations

import copy
import pickle
from types import GeneratorType
from typing import Any

from penstock.common.typeinfo import TypeInformation
from penstock.common.typeinfo.texts import ToText, text_of
from penstock.common.unpicklable import why
from penstock.connectors.sink import Sink, SinkWriter, WriterContext
from penstock.errors import RecordError

_BATCH = 256
MESSAGE_BYTES = 1 << 20
"""A message has no more records when it has so many bytes: the driver takes it at once."""


class CollectSink(Sink):
    """Records are handed to the client once a checkpoint covers them, so none comes twice.

    Without checkpoints they are handed over at once.
    """

    def create_writer(self, context: WriterContext) -> SinkWriter:
        return _ClientWriter(context, transactional=True)


class PrintSink(Sink):
    """Records are printed by the client as they come; after a restart some may come again.

    Values of declared types print as PyFlink prints them, others as Python does.

    `to_stderr` prints them to the standard error of the program instead of its output.
    """

    def __init__(self, identifier: str | None = None, to_stderr: bool = False) -> None:
        self._identifier = identifier
        self.to_stderr = to_stderr
        self._declared: TypeInformation | None = None

    def for_type(self, declared: TypeInformation | None) -> PrintSink:
        typed = copy.copy(self)
        typed._declared = declared
        return typed

    def create_writer(self, context: WriterContext) -> SinkWriter:
        return _PrintWriter(context, self._prefix(context), text_of(self._declared))

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
        self._size = 0

    def write(self, value: Any) -> None:
        # Pickled now: the value may be changed in place before the batch leaves.
        try:
            data = pickle.dumps(value, protocol=5)
        except Exception as error:
            raise RecordError(
                f"a record cannot be sent to the client: {why(error)}", lasting=True
            ) from error
        self._add(data)

    def _add(self, data: bytes | str) -> None:
        self._values.append(data)
        self._size += len(data)
        if len(self._values) >= _BATCH or self._size >= MESSAGE_BYTES:
            self.flush()

    def has_room(self) -> bool:
        return self._context.emit_room()

    def flush(self) -> None:
        if self._values:
            values, self._values = self._values, []
            self._size = 0
            self._context.emit(values, self._transactional)


class _PrintWriter(_ClientWriter):
    def __init__(self, context: WriterContext, prefix: str, text: ToText) -> None:
        super().__init__(context, transactional=False)
        self._prefix = prefix
        self._text = text

    def write(self, value: Any) -> None:
        if isinstance(value, GeneratorType):
            raise RecordError(
                "a record is a generator, which cannot be printed: use flat_map() for the function "
                "that made it"
            )
        self._add(f"{self._prefix}{self._text(value)}")
