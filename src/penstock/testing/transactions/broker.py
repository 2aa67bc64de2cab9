"""The model of a Kafka cluster, as far as transactions go; it knows the truth of each of them.

It follows KIP-98 and KIP-360. A new epoch of a transactional id fences the one before and aborts
what that had open. A transaction is ended by exactly its producer id and epoch. One that stays open
for longer than its timeout is aborted. An id that nothing happens to for long enough is forgotten.

A request is a step of its driver, like a call of the storage: others act before it, and the driver
may die there. It may be carried out twice, because an answer was lost and the client asks again; it
may fail for good, carried out or not, or be carried out later; a slot may die in it. These faults
count to the budget of the run.

What became of a transaction is remembered here for ever, unlike what a client is told.
"""

from __future__ import annotations

import contextlib
import itertools
import random
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, NamedTuple, TypeVar

from penstock.connectors.kafka.coordinator import (
    CoordinatorError,
    Coordinators,
    Transaction,
    UnreachableError,
)
from penstock.testing.faults import FaultyFileSystem, SimulatedCrash
from penstock.testing.simulated import SimulatedClock

T = TypeVar("T")

_NO_SUCH_ID, _INVALID_STATE, _FENCED = 49, 48, 90
_brokers: dict[int, SimulatedBroker] = {}
_numbers = itertools.count()


@dataclass(frozen=True)
class BrokerRates:
    """How often what goes wrong with a request."""

    twice: float = 0.0
    """An answer is lost: the client asks again, and the second answer counts."""
    away: float = 0.0
    """There is no answer: the request was carried out, was not, or will be later."""
    crash: float = 0.0
    """The slot that asks dies before or after the request is carried out."""


class Key(NamedTuple):
    """A transaction, as no other is called."""

    id: str
    producer_id: int
    epoch: int
    start_ms: int


def key_of(committable: Any) -> Key:
    """The transaction that a committable describes."""
    return Key(*(committable[name] for name in Key._fields))


class Message(NamedTuple):
    """A message in a transaction."""

    topic: str
    value: bytes


@dataclass
class _Id:
    """What the cluster knows of a transactional id."""

    name: str
    producer_id: int
    epoch: int
    timeout_ms: int
    touched_ms: int
    before: int = -1
    """The epoch that the current one was asked for by."""
    state: str = "Empty"
    start_ms: int = -1
    begun: int = 0
    """Which of all transactions it is that was begun last."""
    late_ms: int = 0
    """How late the cluster looks for transactions that have timed out."""
    messages: list[Message] = field(default_factory=list)

    @property
    def key(self) -> Key:
        return Key(self.name, self.producer_id, self.epoch, self.start_ms)

    def raise_epoch(self, by: int, timeout_ms: int) -> None:
        self.before = self.epoch
        self.epoch += by
        self.timeout_ms = timeout_ms
        self.state, self.start_ms, self.messages = "Empty", -1, []

    def described(self) -> Transaction:
        return Transaction(self.state, self.timeout_ms, self.start_ms, self.producer_id, self.epoch)


class SimulatedBroker(Coordinators):
    """A cluster; programs are pickled with its number, and so always find the same one."""

    def __init__(
        self,
        rng: random.Random,
        rates: BrokerRates,
        filesystem: FaultyFileSystem,
        expiration_ms: int,
    ) -> None:
        self.number = next(_numbers)
        self.clocks: list[SimulatedClock] = []
        """Those of all drivers: the cluster has the time of the furthest."""
        self.committed: dict[Key, list[Message]] = {}
        """Every transaction that was committed, in that order."""
        self.aborted: set[Key] = set()
        """Every transaction that was aborted."""
        self.timed_out: dict[Key, int] = {}
        """Those of them that were open for too long, and when they were aborted."""
        self.expired = 0
        """How many ids were forgotten."""
        self.begun = 0
        """How many transactions were begun."""
        self.wrong: list[str] = []
        """What no client may do."""
        self.rng = rng
        self._rates = rates
        self._filesystem = filesystem
        self._expiration_ms = expiration_ms
        self._ids: dict[str, _Id] = {}
        self._under_way: list[Callable[[], object]] = []
        self._producers = itertools.count(1)
        self._writers = itertools.count(1)
        _brokers[self.number] = self

    @staticmethod
    def find(number: int) -> SimulatedBroker:
        return _brokers[number]

    def forget(self) -> None:
        _brokers.pop(self.number, None)

    @property
    def now(self) -> int:
        return max(clock.now for clock in self.clocks)

    def next_writer(self) -> int:
        """A number that no other writer has."""
        return next(self._writers)

    def open(self, prefix: str) -> list[tuple[int, str]]:
        """The open transactions of ids with a prefix: a number, which rises, and the id."""
        self._pass_time()
        found = (known for known in self._ids.values() if known.name.startswith(prefix))
        return [(known.begun, known.name) for known in found if known.state == "Ongoing"]

    def knows(self, key: Key) -> bool:
        """Whether it has not forgotten the id of a transaction."""
        return key.id in self._ids

    # --- as Coordinators ----------------------------------------------------------------------

    def describe(self, ids: list[str]) -> dict[str, Transaction]:
        def answer() -> dict[str, Transaction]:
            return {name: self._ids[name].described() for name in ids if name in self._ids}

        return self._request("describe", answer) if ids else {}

    def end(self, name: str, producer_id: int, epoch: int, commit: bool) -> None:
        def end() -> None:
            known = self._current(name, producer_id, epoch)
            ended = "CompleteCommit" if commit else "CompleteAbort"
            if known.state not in ("Ongoing", ended):
                raise CoordinatorError(_INVALID_STATE, f"{name} is {known.state}")
            if known.state == "Ongoing":
                self._end(known, commit)

        self._request(f"end {name}", end, changes=True)

    def init(
        self, name: str, timeout_ms: int, producer_id: int = -1, epoch: int = -1
    ) -> tuple[int, int]:
        def init() -> tuple[int, int]:
            known = self._ids.get(name)
            if known is None:
                known = _Id(name, next(self._producers), 0, timeout_ms, self.now)
                self._ids[name] = known
                return known.producer_id, known.epoch
            if producer_id >= 0 and known.producer_id != producer_id:
                raise CoordinatorError(_FENCED, f"{name} has another producer")
            if epoch < 0 or epoch == known.epoch:
                fences = known.state == "Ongoing"
                if fences:
                    self._end(known, commit=False)
                # One epoch to fence the old producer, one for the new one.
                known.raise_epoch(2 if fences else 1, timeout_ms)
            elif epoch != known.before:
                raise CoordinatorError(_FENCED, f"{name} has epoch {known.epoch}")
            known.touched_ms = self.now
            return known.producer_id, known.epoch

        return self._request(f"init {name}", init, changes=True)

    def with_prefix(self, prefix: str) -> dict[str, str]:
        def answer() -> dict[str, str]:
            names = [name for name in self._ids if name.startswith(prefix)]
            self.rng.shuffle(names)
            return {name: self._ids[name].state for name in names}

        return self._request("list", answer)

    def close(self) -> None:
        """There are no connections."""

    # --- as the client library ----------------------------------------------------------------

    def produce(self, name: str, producer_id: int, epoch: int, messages: list[Message]) -> None:
        """Messages of a producer arrive; the first of a transaction begin it."""

        def arrive() -> None:
            known = self._current(name, producer_id, epoch)
            if known.state == "Empty":
                self.begun += 1
                known.state, known.start_ms, known.begun = "Ongoing", self.now, self.begun
                known.late_ms = self.rng.choice((0, 0, 3_000, 10_000))
            elif known.state != "Ongoing":
                raise CoordinatorError(_INVALID_STATE, f"{name} is {known.state}")
            known.messages += messages

        self._request(f"produce {name}", arrive)

    # --- what happens to transactions ---------------------------------------------------------

    def _current(self, name: str, producer_id: int, epoch: int) -> _Id:
        known = self._ids.get(name)
        if known is None or known.producer_id != producer_id:
            raise CoordinatorError(_NO_SUCH_ID, f"{name} has no producer {producer_id}")
        if known.epoch != epoch:
            raise CoordinatorError(_FENCED, f"{name} has epoch {known.epoch}")
        return known

    def _end(self, known: _Id, commit: bool) -> None:
        known.touched_ms = self.now
        if commit:
            known.state = "CompleteCommit"
            self.committed[known.key] = known.messages
        else:
            known.state = "CompleteAbort"
            self.aborted.add(known.key)
        known.messages = []

    def _pass_time(self) -> None:
        """Do what the cluster does by the clock."""
        now = self.now
        for known in list(self._ids.values()):
            due = known.start_ms + known.timeout_ms + known.late_ms
            if known.state == "Ongoing" and due <= now:
                self.timed_out[known.key] = due
                self._end(known, commit=False)
                known.touched_ms = due
                known.epoch += 1
            if known.state != "Ongoing" and known.touched_ms + self._expiration_ms <= now:
                self.expired += 1
                del self._ids[known.name]

    # --- what happens to requests -------------------------------------------------------------

    def _request(self, what: str, act: Callable[[], T], changes: bool = False) -> T:
        filesystem, rng, rates = self._filesystem, self.rng, self._rates
        if filesystem.before_call is not None:
            filesystem.before_call(f"ask the broker: {what}")
        self._pass_time()
        self._land()
        budget = filesystem.budget
        if not filesystem.armed or budget.left <= 0:
            return act()
        if filesystem.may_crash and rng.random() < rates.crash:
            after = rng.random() < 0.5
            budget.spend(f"a slot dies {'after' if after else 'before'} {what}")
            if after:
                _quietly(act)
            raise SimulatedCrash
        if rng.random() < rates.away:
            outcome = rng.choice(("not done", "done", "late" if changes else "not done"))
            budget.spend(f"the broker is away: {what} {outcome}")
            if outcome == "done":
                _quietly(act)
            elif outcome == "late":
                self._under_way.append(act)
            raise UnreachableError(f"simulated: the broker did not answer to {what}")
        if changes and rng.random() < rates.twice:
            budget.spend(f"asked twice: {what}")
            _quietly(act)
        return act()

    def _land(self) -> None:
        """Requests that nobody waits for any more arrive, one day."""
        for act in list(self._under_way):
            if self.rng.random() < 0.1:
                self._under_way.remove(act)
                _quietly(act)


def _quietly(act: Callable[[], object]) -> None:
    """Carry out a request whose answer nobody hears."""
    with contextlib.suppress(CoordinatorError):
        act()
