"""The Kafka sink, connected to a simulated broker.

Its writer, committer, names of transactions and lease are those of `penstock.connectors.kafka`.
Simulated is what has threads of its own: the client library, the pool that makes producers ready
ahead of time, and the holder of a lease, which looks after it when it is asked for it.
"""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from penstock.common.plain import Plain
from penstock.connectors.kafka.committer import KafkaCommitter
from penstock.connectors.kafka.coordinator import (
    FENCED,
    CoordinatorError,
    Transaction,
    UnreachableError,
)
from penstock.connectors.kafka.lease import Lease
from penstock.connectors.kafka.pool import ProducerPool, Transactional
from penstock.connectors.kafka.production import Production
from penstock.connectors.kafka.transactional_writer import TransactionalKafkaWriter
from penstock.connectors.kafka.transactions import id_of, ids_of, timeout_of_turn
from penstock.connectors.sink import Committer, CommitterContext, Sink, SinkWriter, WriterContext
from penstock.errors import LostOutputError, SinkError
from penstock.testing.transactions.broker import Message, SimulatedBroker, key_of

_LOOKS_AFTER = 0.5
"""How often the holder of a lease has noticed that it was taken over, when that counts."""


class SimulatedTopicSink(Sink):
    """Writes records to a topic of a simulated broker, in transactions."""

    def __init__(self, broker: SimulatedBroker, topic: str, timeout_ms: int) -> None:
        self._broker = broker.number
        self._topic = topic
        self._timeout_ms = timeout_ms

    def create_writer(self, context: WriterContext) -> SinkWriter:
        broker, topic = SimulatedBroker.find(self._broker), self._topic
        writer = f"{context.attempt}-{context.subtask}-{broker.next_writer()}"

        def message(value: Any, timestamp: int | None) -> dict[str, Any]:
            # Pickled now: the value may be changed in place before it leaves.
            return {"topic": topic, "value": pickle.dumps(value, protocol=5)}

        pool = _Pool(
            {},
            lambda number: id_of(topic, context.job_id, writer, number),
            self._timeout_ms,
            broker,
            context.wake,
        )
        return TransactionalKafkaWriter(pool, broker, message, 0.0, context.wake, context.clock)

    def create_committer(self, context: CommitterContext) -> Committer:
        broker = SimulatedBroker.find(self._broker)
        return _Committer(self._topic, context, broker)


class _Committer(KafkaCommitter):
    """Notes what must not be: see `SimulatedBroker.wrong`."""

    def __init__(self, prefix: str, context: CommitterContext, broker: SimulatedBroker) -> None:
        super().__init__(prefix, context.job_id, broker, context.last_attempt)
        self._broker = broker
        self._lease = _Lease(prefix, context.job_id, broker)

    def commit(self, committables: list[Plain]) -> None:
        with self._nothing_fenced():
            super().commit(committables)

    def check(self, committables: list[Plain]) -> None:
        with self._nothing_fenced():
            super().check(committables)

    @contextmanager
    def _nothing_fenced(self) -> Iterator[None]:
        """Only the broker loses what a checkpoint covers, by the clock."""
        try:
            yield
        except LostOutputError as error:
            lost = {key_of(each) for each in error.lost}
            for key in lost & self._broker.aborted - self._broker.timed_out.keys():
                self._broker.wrong.append(f"{key.id} is covered by a checkpoint, and was fenced")
            raise

    def abort_others(self, keep: list[Plain]) -> None:
        """Nothing that was begun before may stay open."""
        before = self._broker.begun
        super().abort_others(keep)
        for number, name in self._broker.open(ids_of(self._prefix)):
            if number <= before and not self._is_later(name):
                self._broker.wrong.append(f"transaction {name} holds readers back: nobody ends it")


class _Lease(Lease):
    """A lease that goes to a newer driver at once: the holder is dead, or stood still for long.

    Older drivers find that the holder lives.
    """

    def __init__(self, prefix: str, job: str, broker: SimulatedBroker) -> None:
        super().__init__(prefix, job, broker)
        self._rng = broker.rng
        self._mark = 2 + broker.next_writer()

    def take(self) -> None:
        if self._held is not None and self._rng.random() < _LOOKS_AFTER:
            try:
                self._held = self._raise(self._held, self._mark)
            except CoordinatorError as error:
                self._lost = error.code in FENCED
        super().take()

    def _watch(self, found: Transaction) -> None:
        if found.timeout_ms > self._mark:
            raise self._refusal("is in use by another job that is running")

    def _begin_to_keep(self) -> None:
        pass


class _Pool(ProducerPool):
    """Makes a producer ready when it is wanted."""

    def start(self) -> None:
        pass

    def take(self) -> Transactional:
        name, turn = self._ask(lambda: self._committed() or self._fresh())
        timeout_ms = timeout_of_turn(self._timeout_ms, turn)
        held = self._ask(lambda: self._coordinators.init(name, timeout_ms))
        assert isinstance(self._coordinators, SimulatedBroker)
        return Transactional(name, turn, _Production(self._coordinators, name, *held))

    def close(self) -> None:
        pass

    def _ask(self, request: Callable[[], Any]) -> Any:
        try:
            return request()
        except (CoordinatorError, UnreachableError) as error:
            raise SinkError(f"a transaction cannot be made ready: {error}") from error


class _Production(Production):
    """A producer of the client library: it sends in the background, in an order that it keeps."""

    def __init__(self, broker: SimulatedBroker, name: str, producer_id: int, epoch: int) -> None:
        self._broker = broker
        self._name = name
        self._held = (producer_id, epoch)
        self._waiting: list[Message] = []
        self._sent = 0
        self.producer = self

    def begin_transaction(self) -> None:
        pass

    def produce(self, message: dict[str, Any]) -> None:
        self._waiting.append(Message(**message))

    def has_room(self, wake: Callable[[], None]) -> bool:
        return True

    def poll(self) -> None:
        self.flush(0.0)

    def flush(self, seconds: float) -> None:
        if not self._waiting:
            return
        waiting, self._waiting = self._waiting, []
        try:
            self._broker.produce(self._name, *self._held, waiting)
        except (CoordinatorError, UnreachableError) as error:
            raise SinkError(f"messages were not delivered: {error}") from error
        self._sent += len(waiting)

    def abandon(self) -> None:
        self._waiting = []

    def covered(self) -> list[dict[str, Any]]:
        return [{"topic": self._name, "partition": 0, "first": 0, "last": self._sent - 1}]
