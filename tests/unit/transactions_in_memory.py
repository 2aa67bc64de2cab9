"""The transactions of a Kafka cluster, in memory: stands for `Coordinators` and the brokers.

It follows KIP-98 and KIP-360: a new epoch fences the old one and aborts what that had open, and a
transaction is ended by exactly its producer id and epoch. Who asks for a new epoch by the one
before the current one is taken for the same client again, and is given the current one. A producer
id whose epochs are used up is followed by another one.
`tests/integration/test_kafka_sink.py` proves the same of a real broker.
"""

from __future__ import annotations

import itertools
from dataclasses import replace

from penstock.connectors.kafka.coordinator import CoordinatorError, Transaction
from penstock.connectors.kafka.transactions import LAST_EPOCH, Committable

INVALID_STATE, FENCED = 48, 90
OFFSETS = ({"topic": "out", "partition": 3, "first": 10, "last": 19},)


class TransactionsInMemory:
    """What each transactional id of the cluster is up to."""

    def __init__(self) -> None:
        self.now: dict[str, Transaction] = {}
        self.described: list[int] = []
        """How many ids each request asked for."""
        self.closed = False
        self._times = itertools.count(1_000)
        self._producers = itertools.count(1)
        self._before: dict[str, int] = {}
        """The epoch that the current one of an id was asked for by."""

    # --- what a writer does -------------------------------------------------------------------

    def begin(self, name: str, timeout_ms: int = 60_000) -> Committable:
        """A writer takes an id, begins a transaction, and prepares it."""
        self.init(name, timeout_ms)
        return self.begin_next(name)

    def begin_next(self, name: str) -> Committable:
        """A producer begins its next transaction, on the producer id and epoch that it has."""
        now = replace(self.now[name], state="Ongoing", start_ms=next(self._times))
        self.now[name] = now
        return Committable(name, now.producer_id, now.epoch, now.start_ms, now.timeout_ms, OFFSETS)

    def use_up_epochs(self, name: str, left: int) -> None:
        """Its producer id has only so many epochs to come."""
        self.init(name, 60_000)
        self.now[name] = replace(self.now[name], epoch=LAST_EPOCH - left)

    def states(self) -> dict[str, str]:
        return {name: transaction.state for name, transaction in self.now.items()}

    # --- as Coordinators ----------------------------------------------------------------------

    def describe(self, ids: list[str]) -> dict[str, Transaction]:
        self.described.append(len(ids))
        return {name: self.now[name] for name in ids if name in self.now}

    def end(self, name: str, producer_id: int, epoch: int, commit: bool) -> None:
        now = self.now[name]
        if (now.producer_id, now.epoch) != (producer_id, epoch):
            raise CoordinatorError(FENCED, name)
        ended = "CompleteCommit" if commit else "CompleteAbort"
        if now.state not in ("Ongoing", ended):
            raise CoordinatorError(INVALID_STATE, name)
        self.now[name] = replace(now, state=ended)

    def init(
        self, name: str, timeout_ms: int, producer_id: int = -1, epoch: int = -1
    ) -> tuple[int, int]:
        now = self.now.get(name)
        if now is None:
            now = Transaction("Empty", timeout_ms, -1, next(self._producers), -1)
        elif producer_id >= 0 and now.producer_id != producer_id:
            raise CoordinatorError(FENCED, name)
        if epoch < 0 or epoch == now.epoch:
            self._before[name] = epoch
            if now.epoch < LAST_EPOCH:
                now = replace(now, epoch=now.epoch + 1)
            else:
                now = replace(now, producer_id=next(self._producers), epoch=0)
        elif epoch != self._before[name]:
            raise CoordinatorError(FENCED, name)
        now = replace(now, state="Empty", timeout_ms=timeout_ms, start_ms=-1)
        self.now[name] = now
        return now.producer_id, now.epoch

    def with_prefix(self, prefix: str) -> dict[str, str]:
        return {name: state for name, state in self.states().items() if name.startswith(prefix)}

    def close(self) -> None:
        self.closed = True
