"""Writes in transactions, one from each checkpoint to the next.

A transaction begins with the first record. At the barrier the writer turns to the next producer at
once; the old one is flushed off the loop, and its transaction is described by a committable. It
stays open, and invisible to consumers that read committed records, until the committer ends it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from penstock.common.plain import Plain
from penstock.connectors.kafka.coordinator import Coordinators
from penstock.connectors.kafka.pool import ProducerPool, Transactional
from penstock.connectors.kafka.production import Production
from penstock.connectors.kafka.transactions import Committable
from penstock.connectors.sink import SinkWriter
from penstock.errors import SinkError


class TransactionalKafkaWriter(SinkWriter):
    """The writer of an exactly-once sink."""

    def __init__(
        self,
        pool: ProducerPool,
        coordinators: Coordinators,
        message: Callable[[Any], dict[str, Any]],
        flush_seconds: float,
        wake: Callable[[], None],
    ) -> None:
        self._pool = pool
        self._coordinators = coordinators
        self._message = message
        self._flush_seconds = flush_seconds
        self._wake = wake
        self._current: Transactional | None = None
        self._begun = False
        self._preparing: set[Production] = set()

    def open(self) -> None:
        self._pool.start()

    def has_room(self) -> bool:
        if self._current is None:
            self._current = self._pool.take()
        return self._current is not None and self._current.production.has_room(self._wake)

    def write(self, value: Any) -> None:
        message = self._message(value)
        if self._current is None:
            self._current = self._pool.wait()
        current = self._current
        if not self._begun:
            current.production.producer.begin_transaction()
            self._begun = True
        current.production.produce(message)

    def flush(self) -> None:
        if self._current is not None:
            self._current.production.poll()

    def prepare_commit(self) -> Callable[[], list[Plain]]:
        current = self._current
        if current is None or not self._begun:
            return list
        self._current, self._begun = None, False
        return lambda: self._prepare(current)

    def _prepare(self, transactional: Transactional) -> list[Plain]:
        """All is delivered, and the coordinator says which transaction it is."""
        production = transactional.production
        self._preparing.add(production)
        production.flush(self._flush_seconds)
        self._preparing.discard(production)
        found = self._coordinators.describe([transactional.id]).get(transactional.id)
        if found is None or found.state != "Ongoing":
            state = "unknown" if found is None else found.state
            raise SinkError(
                f"transaction {transactional.id} should be open and is {state}: it timed out, or "
                "another job uses the same transactional id prefix"
            )
        committable = Committable(
            transactional.id,
            found.producer_id,
            found.epoch,
            found.start_ms,
            found.timeout_ms,
            tuple(production.covered()),
        )
        self._pool.give_back(transactional)
        return [committable.plain()]

    def close(self) -> None:
        self._pool.close()
        self._coordinators.close()
        if self._current is not None:
            self._current.production.abandon()
            self._current = None
        for production in list(self._preparing):
            production.abandon()
