"""Producers for transactions, made ready ahead of time in a thread.

Making one takes tens of milliseconds, and a writer needs the next at every checkpoint. An id whose
transaction is committed is used again, in its next turn, until it has had its last; while there is
none, a new id joins the pool. So the pool is as large as the number of transactions that wait to be
committed, and a little more.
"""

from __future__ import annotations

import queue
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from penstock.connectors.kafka.coordinator import Coordinators
from penstock.connectors.kafka.production import Production
from penstock.connectors.kafka.refusals import code_of, refusal
from penstock.connectors.kafka.transactions import TURNS, prefix_of, timeout_of_turn
from penstock.errors import PenstockError, SinkError

READY = 2
INIT_SECONDS = 60.0
_AWAY = ("_TRANSPORT", "_TIMED_OUT", "_ALL_BROKERS_DOWN", "_RESOLVE")
_RETRY_SECONDS, _WAIT_SECONDS = 0.2, 0.005


@dataclass(frozen=True)
class Transactional:
    """A producer that may begin its one transaction."""

    id: str
    turn: int
    production: Production


class ProducerPool:
    """Hands out producers, each for one transaction."""

    def __init__(
        self,
        properties: Mapping[str, Any],
        new_id: Callable[[int], str],
        timeout_ms: int,
        coordinators: Coordinators,
        wake: Callable[[], None],
    ) -> None:
        self._properties = properties
        self._new_id = new_id
        self._timeout_ms = timeout_ms
        self._coordinators = coordinators
        self._wake = wake
        self._made = 0
        self._ready: queue.Queue[Transactional] = queue.Queue()
        self._waiting: list[Transactional] = []
        self._lock = threading.Lock()
        self._wanted = threading.Semaphore(READY)
        self._closed = threading.Event()
        self._problem: PenstockError | None = None
        self._thread = threading.Thread(target=self._run, name="penstock-kafka-pool", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def take(self) -> Transactional | None:
        """A producer that is ready, or None: `wake` says when to ask again."""
        if self._problem is not None:
            raise self._problem
        try:
            taken = self._ready.get_nowait()
        except queue.Empty:
            return None
        self._wanted.release()
        return taken

    def wait(self) -> Transactional:
        """A producer, as soon as there is one."""
        while (taken := self.take()) is None:
            time.sleep(_WAIT_SECONDS)
        return taken

    def give_back(self, prepared: Transactional) -> None:
        """Its transaction is prepared: the id is free when somebody has ended it.

        The producer is kept until then; it must not be closed, that would abort.
        """
        with self._lock:
            self._waiting.append(prepared)

    def close(self) -> None:
        """Stop. Nothing is aborted: that is for whoever knows what is covered."""
        self._closed.set()
        self._wanted.release()
        self._thread.join(5.0)

    def _run(self) -> None:
        while True:
            self._wanted.acquire()
            if self._closed.is_set():
                return
            try:
                self._ready.put(self._make())
            except PenstockError as error:
                self._problem = error
            except Exception as error:
                self._problem = SinkError(f"a Kafka transaction cannot be made ready: {error}")
            self._wake()
            if self._problem is not None:
                return

    def _make(self) -> Transactional:
        name, turn = self._committed() or self._fresh()
        timeout = timeout_of_turn(self._timeout_ms, turn)
        own = {"transactional.id": name, "transaction.timeout.ms": timeout}
        production = Production({**self._properties, **own})
        deadline = time.monotonic() + INIT_SECONDS
        while True:
            try:
                # The library finds its coordinator sooner once it knows the cluster.
                production.producer.list_topics(timeout=INIT_SECONDS)
                production.producer.init_transactions(INIT_SECONDS)
                return Transactional(name, turn, production)
            except Exception as error:
                if not _passing(error) or time.monotonic() > deadline or self._closed.is_set():
                    what = f"transactional id {name} cannot be made ready: {error}"
                    raise refusal(code_of(error), what, prefix_of(name)) from error
                time.sleep(_RETRY_SECONDS)

    def _committed(self) -> tuple[str, int] | None:
        """An id of the pool whose transaction is committed, and its next turn.

        An id that has had its last turn leaves the pool here.
        """
        with self._lock:
            waiting = list(self._waiting)
        if not waiting:
            return None
        known = self._coordinators.describe([one.id for one in waiting])
        for one in waiting:
            if one.id in known and known[one.id].state == "CompleteCommit":
                with self._lock:
                    self._waiting.remove(one)
                if one.turn + 1 < TURNS:
                    return one.id, one.turn + 1
        return None

    def _fresh(self) -> tuple[str, int]:
        self._made += 1
        return self._new_id(self._made), 0


def _passing(error: Exception) -> bool:
    """Whether a broker may say something else soon."""
    reason: Any = error.args[0] if error.args else None
    if not hasattr(reason, "retriable"):
        return False
    return bool(reason.retriable() or reason.name() in _AWAY)
