"""The right to use a transactional id prefix: one live job at a time.

Fencing would let the newcomer win, silently, and fail the job that runs. So a job holds a *lease*:
a transactional id of its own, never used for a transaction, whose epoch it raises every two
seconds. Raising takes the current epoch as its condition.

That is not enough to keep two apart: a broker takes the epoch before the current one for the same
request once more, and answers both alike. So the id has a timeout that is its holder's *mark*, and
a holder looks for its mark before it raises. Of two the one that raised last finds its own.

A newcomer watches the epoch. If it moves, the holder lives, and the newcomer is refused; if it
stands still for three raises, the holder is dead, and the newcomer takes over. No clock is compared
with another. A holder that leaves says so by giving the id a timeout of one millisecond, which is
never used otherwise, so the next one need not watch.
"""

from __future__ import annotations

import random
import threading
import time

from penstock.connectors.kafka.coordinator import (
    FENCED,
    CoordinatorError,
    Coordinators,
    Transaction,
    UnreachableError,
)
from penstock.connectors.kafka.settings import log
from penstock.connectors.kafka.transactions import ids_of, job_of, lease_of
from penstock.errors import SinkError

RAISE_SECONDS = 2.0
WATCH_SECONDS = 3 * RAISE_SECONDS
_MARKS_MS, _RELEASED_MS = range(2, 10_000), 1
"""Marks are below all timeouts of transactions: a broker that takes those takes these."""
_TAKEN = 90


class Lease:
    """Held from `take` to `release`, by a thread that raises the epoch."""

    def __init__(self, prefix: str, job: str, coordinators: Coordinators) -> None:
        self._prefix = prefix
        self._job = job
        self._id = lease_of(prefix)
        self._coordinators = coordinators
        self._mark = random.choice(_MARKS_MS)
        self._held: tuple[int, int] | None = None
        self._lost = False
        self._released = threading.Event()
        self._lock = threading.Lock()

    def take(self) -> None:
        """Hold the lease; SinkError if another live job does.

        CoordinatorError if the brokers do not let this one have it.
        """
        if self._lost:
            # Whoever has it now may be gone the next time, and then it is to be had again.
            self._held, self._lost = None, False
            raise self._refusal("has been taken over by another job")
        if self._held is not None:
            return
        found = self._coordinators.describe([self._id]).get(self._id)
        if found is not None and found.timeout_ms != _RELEASED_MS:
            self._watch(found)
        try:
            if found is None:
                self._held = self._coordinators.init(self._id, self._mark)
            else:
                self._held = self._coordinators.init(
                    self._id, self._mark, found.producer_id, found.epoch
                )
        except CoordinatorError as error:
            if error.code not in FENCED:
                raise
            raise self._refusal("was just taken by another job") from error
        self._begin_to_keep()

    def release(self) -> None:
        """Let the next one have it at once."""
        self._released.set()
        with self._lock:
            if self._held is not None and not self._lost:
                try:
                    self._raise(self._held, _RELEASED_MS)
                except (CoordinatorError, UnreachableError) as error:
                    log.warning("the lease on %s could not be given back: %s", self._prefix, error)
            self._held = None

    def _watch(self, found: Transaction) -> None:
        deadline = time.monotonic() + WATCH_SECONDS
        while time.monotonic() < deadline:
            time.sleep(RAISE_SECONDS / 4)
            now = self._coordinators.describe([self._id]).get(self._id)
            if now is None or now.timeout_ms == _RELEASED_MS:
                return
            if (now.producer_id, now.epoch) != (found.producer_id, found.epoch):
                raise self._refusal("is in use by another job that is running")

    def _begin_to_keep(self) -> None:
        threading.Thread(target=self._keep, name="penstock-kafka-lease", daemon=True).start()

    def _keep(self) -> None:
        while not self._released.wait(RAISE_SECONDS):
            with self._lock:
                if self._held is None:
                    return
                try:
                    self._held = self._raise(self._held, self._mark)
                except (CoordinatorError, UnreachableError) as error:
                    if isinstance(error, CoordinatorError) and error.code in FENCED:
                        self._lost = True
                        log.error("%s", self._refusal("has been taken over by another job"))
                        return
                    # A broker that is away lets nobody else take the lease either.
                    log.warning("the lease on %s could not be kept: %s", self._prefix, error)

    def _raise(self, held: tuple[int, int], timeout_ms: int) -> tuple[int, int]:
        """The next epoch; CoordinatorError if another job has the lease."""
        now = self._coordinators.describe([self._id]).get(self._id)
        if now is None or now.timeout_ms != self._mark:
            raise CoordinatorError(_TAKEN, f"the lease {self._id} is another job's")
        return self._coordinators.init(self._id, timeout_ms, *held)

    def _refusal(self, what: str) -> SinkError:
        others = {
            job_of(name, self._prefix)
            for name in self._coordinators.with_prefix(ids_of(self._prefix))
            if name != self._id
        } - {self._job, ""}
        known = f" ({', '.join(sorted(others))})" if others else ""
        return SinkError(
            f"the transactional id prefix {self._prefix!r} {what}{known}; give each job a prefix "
            "of its own, or stop the other one"
        )
