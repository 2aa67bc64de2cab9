"""The names of transactions, and the description of one that is prepared.

A transactional id reads ``prefix/job/writer/number``: the prefix is the user's, the job its id, the
writer a name that no other writer ever has, the number one of a small pool. So ids of ``upi`` are
never taken for those of ``upi-2``, and two writers never share one.

The client library goes from one transaction to the next on the same producer id and epoch, so an
old committable, committed again, could commit the next, unfinished transaction. Therefore an id is
used again only after its transaction is committed, and only through a new epoch. And whoever finds
a later epoch must be able to tell why: because the id was used again, or because somebody fenced
the transaction? The broker keeps one number with every id that we may choose: its timeout. It
carries the *turn* of the id, which changes whenever the id is used again, and whether it is
*retired*: fenced by a recovery, never to be used. Such a number has room for few turns, so an id
has an end: after its last turn a new id takes its place.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from penstock.common.plain import Plain
from penstock.connectors.kafka.coordinator import Transaction

_DELIMITER = "/"
TURNS = 500
"""How many transactions an id is used for."""
MARGIN_MS = 2 * TURNS
"""How much shorter than it was set to be a timeout may be, because it carries a turn."""

LAST_EPOCH = 32_766
"""The last epoch of a producer id; the next one of the transactional id is 0 of another."""

COMMITTING = frozenset({"PrepareCommit", "CompleteCommit"})


def ids_of(prefix: str) -> str:
    """What the ids of a prefix begin with."""
    return prefix + _DELIMITER


def id_of(prefix: str, job: str, writer: str, number: int) -> str:
    return _DELIMITER.join((prefix, job, writer, str(number)))


def is_of(prefix: str, name: Plain) -> bool:
    """Whether this is the id of a transaction of the prefix."""
    if type(name) is not str or not name.startswith(ids_of(prefix)):
        return False
    # The lease has no job in its name, and no transactions.
    return bool(job_of(name, prefix))


def prefix_of(name: str) -> str:
    """The prefix of a transactional id."""
    return name.split(_DELIMITER)[0]


def job_of(name: str, prefix: str) -> str:
    """The job whose transactional id this is."""
    return name.removeprefix(ids_of(prefix)).split(_DELIMITER)[0]


def attempt_of(name: str, prefix: str, job: str) -> int | None:
    """The attempt of `job` in which a writer has made a transactional id; None: another job's."""
    attempt = name.removeprefix(ids_of(prefix) + job + _DELIMITER).split("-")[0]
    return int(attempt) if attempt.isdigit() else None


def lease_of(prefix: str) -> str:
    """The id that stands for the right to use a prefix; no job has an empty name."""
    return f"{prefix}{_DELIMITER}{_DELIMITER}lease"


def timeout_of_turn(timeout_ms: int, turn: int) -> int:
    """The timeout that carries one of the turns."""
    assert 0 <= turn < TURNS, "an id has an end"
    return (timeout_ms - MARGIN_MS) // 2 * 2 + 2 * turn


def retired(timeout_ms: int) -> int:
    """The timeout of an id that is retired, at the turn that it had."""
    return timeout_ms | 1


def is_retired(timeout_ms: int) -> bool:
    return bool(timeout_ms & 1)


@dataclass(frozen=True, eq=False)
class Committable:
    """A transaction that waits to be committed."""

    id: str
    producer_id: int
    epoch: int
    start_ms: int
    timeout_ms: int
    offsets: tuple[dict[str, Any], ...]
    """What it covers: topic, partition, first and last offset."""

    def plain(self) -> Plain:
        return {**asdict(self), "offsets": list(self.offsets)}

    @staticmethod
    def of(value: Plain) -> Committable:
        return Committable(**{**value, "offsets": tuple(value["offsets"])})

    def is_this(self, now: Transaction) -> bool:
        """Whether the coordinator speaks of this very transaction."""
        return (now.producer_id, now.epoch, now.start_ms) == (
            self.producer_id,
            self.epoch,
            self.start_ms,
        )

    def is_committed(self, now: Transaction) -> bool:
        """Whether it is committed, or will be without our doing."""
        if self.is_this(now):
            return now.state in COMMITTING
        if now.timeout_ms // 2 != self.timeout_ms // 2:
            return True
        # Older versions counted the turns of an id in a circle. Every turn took an epoch or more,
        # and fencing takes no more than a few.
        return self._epochs_to(now) >= TURNS

    def _epochs_to(self, now: Transaction) -> int:
        """How many epochs the id has had since, at least."""
        if now.producer_id == self.producer_id:
            return now.epoch - self.epoch
        return LAST_EPOCH + 1 - self.epoch + now.epoch

    def hindrance(self, now: Transaction | None) -> str | None:
        """Why it can never be committed; None if it is, or can be."""
        if now is None:
            return "the cluster does not know it any more, so it may have been committed or not"
        if self.is_committed(now) or (self.is_this(now) and now.state == "Ongoing"):
            return None
        return f"it is not open any more ({now.state}, epoch {now.epoch})"

    def described(self) -> str:
        """The transaction and its offsets, for people."""
        covers = "; ".join(
            f"topic {part['topic']}, partition {part['partition']}, offsets {part['first']} to "
            f"{part['last']}"
            for part in self.offsets
        )
        return f"transaction {self.id} (producer {self.producer_id}, epoch {self.epoch}): {covers}"
