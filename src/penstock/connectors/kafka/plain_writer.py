"""Writes without transactions: at least once, or with no promise at all."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from penstock.common.plain import Plain
from penstock.connectors.kafka.messages import ToMessage
from penstock.connectors.kafka.production import Production
from penstock.connectors.sink import SinkWriter


class PlainKafkaWriter(SinkWriter):
    """Sends records as they come; a checkpoint waits until they have arrived, or does not."""

    def __init__(
        self,
        properties: Mapping[str, Any],
        message: ToMessage,
        waits: bool,
        flush_seconds: float,
        wake: Callable[[], None],
    ) -> None:
        self._properties = properties
        self._message = message
        self._waits = waits
        self._flush_seconds = flush_seconds
        self._wake = wake
        self._production: Production | None = None

    def open(self) -> None:
        self._production = Production(self._properties)

    def write(self, value: Any) -> None:
        self.write_timed(value, None)

    def write_timed(self, value: Any, timestamp: int | None) -> None:
        self._open().produce(self._message(value, timestamp))

    def has_room(self) -> bool:
        return self._open().has_room(self._wake)

    def flush(self) -> None:
        self._open().poll()

    def prepare_commit(self) -> Callable[[], list[Plain]]:
        production = self._open()

        def finish() -> list[Plain]:
            production.flush(self._flush_seconds)
            return []

        return finish if self._waits else list

    def close(self) -> None:
        if self._production is not None:
            # What the checkpoint does not cover comes again; there is nothing to wait for.
            self._production.abandon()
            self._production = None

    def _open(self) -> Production:
        assert self._production is not None, "a writer is opened before it is used"
        return self._production
