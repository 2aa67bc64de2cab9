"""The transactions of a cluster, seen from outside: described, ended and fenced by their ids.

A producer of the client library can only end transactions that it began itself. After a crash
somebody else must, so these requests go to the brokers directly. Every method may be called from
any process and any thread, waits for brokers that are away, and raises `CoordinatorError` with the
broker's error code when the answer is final.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import TypeVar

from penstock.connectors.kafka.brokers import Address, Brokers
from penstock.connectors.kafka.connection import BrokerConnection
from penstock.connectors.kafka.refusals import reason_of
from penstock.connectors.kafka.wire import Reader, Writer

_FIND_COORDINATOR, _INIT_PRODUCER_ID, _END_TXN = 10, 22, 26
_DESCRIBE_TRANSACTIONS, _LIST_TRANSACTIONS = 65, 66
_TRANSACTION = 1

NOT_FOUND = 105
FENCED = frozenset({47, 49, 90})
"""Somebody else has had the id since."""
ENDED = FENCED | {48, NOT_FOUND}
"""The transaction is not open any more."""
_PASSING = frozenset({14, 15, 16, 51})
"""The coordinator loads, is elsewhere, or still works on the transaction: worth another try."""
_PAUSE_SECONDS = 0.1

T = TypeVar("T")


class CoordinatorError(Exception):
    """A broker's final answer, by its code."""

    def __init__(self, code: int, what: str) -> None:
        super().__init__(f"{what}: {reason_of(code)}")
        self.code = code


class UnreachableError(Exception):
    """No broker answered in time."""


@dataclass(frozen=True)
class Transaction:
    """What a coordinator says of a transactional id."""

    state: str
    """Empty, Ongoing, PrepareCommit, CompleteCommit, PrepareAbort, CompleteAbort, ..."""
    timeout_ms: int
    start_ms: int
    producer_id: int
    epoch: int


class _Passing(Exception):
    """Try again: the coordinator is busy or has moved."""


class Coordinators:
    """The transaction coordinators of one cluster."""

    def __init__(self, properties: Mapping[str, str], patience_seconds: float = 60.0) -> None:
        self._properties = {k: v for k, v in properties.items() if isinstance(v, str)}
        self._patience = patience_seconds
        self._lock = threading.Lock()
        self._closed = threading.Event()
        self._brokers = Brokers(self._properties)
        self._found: dict[str, Address] = {}

    # --- requests -----------------------------------------------------------------------------

    def describe(self, ids: list[str]) -> dict[str, Transaction]:
        """What is known of each of `ids`; those that the cluster does not know are left out."""
        found: dict[str, Transaction] = {}

        def ask(some: list[str], connection: BrokerConnection) -> None:
            body = Writer().compact_array(some).tags()
            answer = connection.request(_DESCRIBE_TRANSACTIONS, 0, body)
            answer.int32()
            for _ in range(answer.compact_length()):
                code, name, transaction = _described(answer)
                if code == NOT_FOUND:
                    continue
                _check(code, f"transaction {name} cannot be described")
                found[name] = transaction

        def all_ids() -> None:
            found.clear()
            by_coordinator: dict[Address, list[str]] = {}
            for name in ids:
                by_coordinator.setdefault(self._coordinator(name), []).append(name)
            for address, some in by_coordinator.items():
                self._brokers.ask(address, partial(ask, some))

        if ids:
            self._patiently(all_ids)
        return found

    def end(self, name: str, producer_id: int, epoch: int, commit: bool) -> None:
        """Commit or abort the transaction of exactly this producer id and epoch."""
        body = Writer().compact_string(name).int64(producer_id).int16(epoch).boolean(commit).tags()

        def ask(connection: BrokerConnection) -> None:
            answer = connection.request(_END_TXN, 3, body)
            answer.int32()
            _check(answer.int16(), f"transaction {name} cannot be ended")

        self._patiently(lambda: self._brokers.ask(self._coordinator(name), ask))

    def init(
        self, name: str, timeout_ms: int, producer_id: int = -1, epoch: int = -1
    ) -> tuple[int, int]:
        """A new epoch of an id: whoever had it is fenced, and its open transaction is aborted.

        With a producer id and epoch, only if they are still the current ones. Returns the new ones.
        """
        body = Writer().compact_string(name).int32(timeout_ms).int64(producer_id).int16(epoch)
        body.tags()

        def ask(connection: BrokerConnection) -> tuple[int, int]:
            answer = connection.request(_INIT_PRODUCER_ID, 4, body)
            answer.int32()
            _check(answer.int16(), f"transactional id {name} cannot be taken")
            return answer.int64(), answer.int16()

        return self._patiently(lambda: self._brokers.ask(self._coordinator(name), ask))

    def with_prefix(self, prefix: str) -> dict[str, str]:
        """All transactional ids that begin with `prefix`, with their states."""
        found: dict[str, str] = {}

        def ask(connection: BrokerConnection) -> None:
            body = Writer().varint(1).varint(1).tags()
            answer = connection.request(_LIST_TRANSACTIONS, 0, body)
            answer.int32()
            _check(answer.int16(), "transactions cannot be listed")
            for _ in range(answer.compact_length()):
                answer.compact_string()
            answer_states(answer, found)

        def answer_states(answer: Reader, into: dict[str, str]) -> None:
            for _ in range(answer.compact_length()):
                name = answer.compact_string() or ""
                answer.int64()
                state = answer.compact_string() or ""
                answer.tags()
                if name.startswith(prefix):
                    into[name] = state

        def all_brokers() -> None:
            found.clear()
            for address in self._brokers.all():
                self._brokers.ask(address, ask)

        self._patiently(all_brokers)
        return found

    def close(self) -> None:
        """Close all connections; whoever still waits for an answer stops waiting."""
        self._closed.set()
        with self._lock:
            self._forget()

    # --- finding brokers ----------------------------------------------------------------------

    def _coordinator(self, name: str) -> Address:
        if name not in self._found:
            self._found[name] = self._brokers.ask_any(partial(_find, name))
        return self._found[name]

    def _forget(self) -> None:
        self._brokers.forget()
        self._found.clear()

    def _patiently(self, ask: Callable[[], T]) -> T:
        deadline = time.monotonic() + self._patience
        while True:
            with self._lock:
                try:
                    return ask()
                except (OSError, EOFError, _Passing) as error:
                    self._forget()
                    problem = error
            if time.monotonic() > deadline or self._closed.wait(_PAUSE_SECONDS):
                raise UnreachableError(
                    f"Kafka at {self._properties.get('bootstrap.servers')} does not answer: "
                    f"{problem}"
                ) from problem


def _find(name: str, connection: BrokerConnection) -> Address:
    """Where the coordinator of a transactional id is."""
    body = Writer().string(name).int8(_TRANSACTION)
    answer = connection.request(_FIND_COORDINATOR, 1, body, flexible=False)
    answer.int32()
    code = answer.int16()
    answer.string()
    _check(code, f"the coordinator of {name} cannot be found")
    answer.int32()
    return answer.string() or "", answer.int32()


def _described(answer: Reader) -> tuple[int, str, Transaction]:
    code = answer.int16()
    name = answer.compact_string() or ""
    state = answer.compact_string() or ""
    timeout_ms, start_ms = answer.int32(), answer.int64()
    transaction = Transaction(state, timeout_ms, start_ms, answer.int64(), answer.int16())
    for _ in range(answer.compact_length()):
        answer.compact_string()
        for _ in range(answer.compact_length()):
            answer.int32()
        answer.tags()
    answer.tags()
    return code, name, transaction


def _check(code: int, what: str) -> None:
    if code in _PASSING:
        raise _Passing(f"{what}: error {code}")
    if code:
        raise CoordinatorError(code, what)
