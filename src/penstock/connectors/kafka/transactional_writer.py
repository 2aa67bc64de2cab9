"""Writes in transactions, one from each checkpoint to the next.

A transaction begins with the first record. At the barrier the writer turns to the next producer at
once; the old one is flushed off the loop, and its transaction is described by a committable. It
stays open, and invisible to consumers that read committed records, until the committer ends it.

Two producers do not wait for each other, and a partition's order is that of arrival. So messages of
the next transaction are held until those of the one before have arrived.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from penstock.common.clock import Clock
from penstock.common.plain import Plain
from penstock.connectors.kafka.coordinator import Coordinators
from penstock.connectors.kafka.messages import ToMessage
from penstock.connectors.kafka.pool import ProducerPool, Transactional
from penstock.connectors.kafka.production import ROOM
from penstock.connectors.kafka.transactions import Committable
from penstock.connectors.sink import SinkWriter
from penstock.errors import SinkError


@dataclass(eq=False)
class _Turn:
    """The transaction from one checkpoint to the next."""

    transactional: Transactional
    before: threading.Event
    """All messages of the transaction before have arrived."""
    arrived: threading.Event = field(default_factory=threading.Event)
    held: list[dict[str, Any]] = field(default_factory=list)
    begun: bool = False

    def release(self) -> None:
        """Send what was held, if it may be sent."""
        if self.held and self.before.is_set():
            held, self.held = self.held, []
            for message in held:
                self.transactional.production.produce(message)


class TransactionalKafkaWriter(SinkWriter):
    """The writer of an exactly-once sink."""

    def __init__(
        self,
        pool: ProducerPool,
        coordinators: Coordinators,
        message: ToMessage,
        flush_seconds: float,
        wake: Callable[[], None],
        clock: Clock,
    ) -> None:
        self._pool = pool
        self._coordinators = coordinators
        self._message = message
        self._flush_seconds = flush_seconds
        self._wake = wake
        self._clock = clock
        self._turn: _Turn | None = None
        self._arrived = threading.Event()
        self._arrived.set()
        self._preparing: set[_Turn] = set()

    def open(self) -> None:
        self._pool.start()

    def has_room(self) -> bool:
        if self._turn is None:
            taken = self._pool.take()
            if taken is None:
                return False
            self._turn = _Turn(taken, self._arrived)
        turn = self._turn
        turn.release()
        return len(turn.held) < ROOM and turn.transactional.production.has_room(self._wake)

    def write(self, value: Any) -> None:
        self.write_timed(value, None)

    def write_timed(self, value: Any, timestamp: int | None) -> None:
        message = self._message(value, timestamp)
        if self._turn is None:
            self._turn = _Turn(self._pool.wait(), self._arrived)
        turn = self._turn
        if not turn.begun:
            turn.transactional.production.producer.begin_transaction()
            turn.begun = True
        if turn.before.is_set():
            turn.release()
            turn.transactional.production.produce(message)
        else:
            turn.held.append(message)

    def flush(self) -> None:
        if self._turn is not None:
            self._turn.release()
            self._turn.transactional.production.poll()

    def prepare_commit(self) -> Callable[[], list[Plain]]:
        turn = self._turn
        if turn is None or not turn.begun:
            return list
        self._turn, self._arrived = None, turn.arrived
        self._preparing.add(turn)
        return lambda: self._prepare(turn)

    def _prepare(self, turn: _Turn) -> list[Plain]:
        """All has arrived, and the coordinator says which transaction it is."""
        name, production = turn.transactional.id, turn.transactional.production
        if not turn.before.is_set():
            raise SinkError(f"transaction {name} follows one that could not be prepared")
        turn.release()
        production.flush(self._flush_seconds)
        turn.arrived.set()
        self._preparing.discard(turn)
        self._wake()
        found = self._coordinators.describe([name]).get(name)
        if found is None or found.state != "Ongoing":
            state = "unknown" if found is None else found.state
            raise SinkError(
                f"transaction {name} should be open and is {state}: it timed out, or another job "
                "uses the same transactional id prefix"
            )
        committable = Committable(
            name,
            found.producer_id,
            found.epoch,
            found.start_ms,
            found.timeout_ms,
            tuple(production.covered()),
        )
        self._pool.give_back(turn.transactional)
        return [committable.plain()]

    def check_prepared(self, committables: list[Plain], for_ms: int) -> None:
        carried = [Committable.of(value) for value in committables]
        known = self._coordinators.describe([one.id for one in carried])
        until = self._clock.now_ms() + for_ms
        for one in carried:
            why = one.hindrance(known.get(one.id))
            if why is None and one.start_ms + one.timeout_ms < until:
                why = f"it times out before {for_ms / 1000:g} s are over"
            if why is not None:
                raise SinkError(
                    "output that was prepared for checkpoints that failed cannot wait for another "
                    f"one: {why}; {one.described()}; raise transaction.timeout.ms above the "
                    "longest time in which no checkpoint is complete"
                )

    def close(self) -> None:
        self._pool.close()
        self._coordinators.close()
        for turn in (*self._preparing, *([] if self._turn is None else [self._turn])):
            turn.transactional.production.abandon()
        self._turn = None
