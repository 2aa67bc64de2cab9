"""Ends transactions from the JobMaster: what a checkpoint covers is committed, the rest is fenced.

Committing again is harmless: the transaction is named exactly, and one that is committed stays so.
A transaction that is gone (it timed out, or somebody fenced it) is lost output, and an error that
names it and the offsets it covered.

What a checkpoint covers is data, not an order: transactions of others are not committed, whatever
its files say.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager

from penstock.common.plain import Plain
from penstock.connectors.kafka.coordinator import (
    ENDED,
    CoordinatorError,
    Coordinators,
    Transaction,
    UnreachableError,
)
from penstock.connectors.kafka.lease import Lease
from penstock.connectors.kafka.refusals import refusal
from penstock.connectors.kafka.transactions import (
    Committable,
    attempt_of,
    ids_of,
    is_of,
    is_retired,
    lease_of,
    retired,
)
from penstock.connectors.sink import Committer
from penstock.errors import LostOutputError, SinkError, SinkRefusedError

_DESCRIBE_AT_ONCE = 500


class KafkaCommitter(Committer):
    """The committer of an exactly-once sink."""

    def __init__(
        self, prefix: str, job: str, coordinators: Coordinators, last_attempt: int = sys.maxsize
    ) -> None:
        self._prefix = prefix
        self._job = job
        self._last_attempt = last_attempt
        self._coordinators = coordinators
        self._lease = Lease(prefix, job, coordinators)

    def commit(self, committables: list[Plain]) -> None:
        prepared = self._own(committables)
        with self._committing():
            known = self._found(prepared)
            for number, one in enumerate(prepared):
                if not one.is_committed(known[one.id]):
                    self._end(one, visible=prepared[:number])

    def check(self, committables: list[Plain]) -> None:
        with self._committing():
            self._found(self._own(committables))

    def _own(self, committables: list[Plain]) -> list[Committable]:
        """The committables; SinkRefusedError if one is not of this sink's prefix."""
        prepared = [Committable.of(value) for value in committables]
        for one in prepared:
            if not is_of(self._prefix, one.id):
                raise SinkRefusedError(
                    f"a checkpoint covers transaction {one.id!r:.300}, which is none of the "
                    f"transactional id prefix {self._prefix!r}; give the sink the prefix that it "
                    "had, or another uid and begin with --allow-non-restored-state"
                )
        return prepared

    def visible(self, committables: list[Plain]) -> list[Plain]:
        prepared = [Committable.of(value) for value in committables]
        with self._committing():
            known = self._describe([one.id for one in prepared])
        return [one.plain() for one in _visible(prepared, known)]

    @contextmanager
    def _committing(self) -> Iterator[None]:
        """What a coordinator says within the block is a SinkError outside."""
        try:
            yield
        except CoordinatorError as error:
            what = f"transactions cannot be committed: {error}"
            raise refusal(error.code, what, self._prefix) from error
        except UnreachableError as error:
            raise SinkError(f"transactions cannot be committed now: {error}") from error

    def _found(self, prepared: list[Committable]) -> dict[str, Transaction]:
        """What the cluster knows of them; LostOutputError if one cannot be committed."""
        known = self._describe([one.id for one in prepared])
        lost = {one: why for one in prepared if (why := one.hindrance(known.get(one.id)))}
        if lost:
            raise _lost(lost, _visible(prepared, known))
        return known

    def _end(self, one: Committable, visible: list[Committable]) -> None:
        """Commit one; `visible` are committed already."""
        try:
            self._coordinators.end(one.id, one.producer_id, one.epoch, commit=True)
        except CoordinatorError as error:
            if error.code not in ENDED:
                raise
            # An answer may have been lost on the way, and then this is the second request.
            again = self._describe([one.id])
            if not _visible([one], again):
                raise _lost({one: str(error)}, visible) from error
            if one.id not in again:
                raise _lost({one: str(error)}, [*visible, one]) from error

    def abort_others(self, keep: list[Plain]) -> None:
        """Fence every id of the prefix that has a transaction open or could begin one.

        An id whose transaction is settled is left alone: its producer is never used again without
        a new epoch. So is one of a driver that has taken the job over, which a driver that stood
        still may find. The lease on the prefix is held from here on.
        """
        try:
            self._lease.take()
            kept = {value["id"]: Committable.of(value) for value in keep}
            found = self._coordinators.with_prefix(ids_of(self._prefix))
            lease = lease_of(self._prefix)
            unsettled = [
                name
                for name, state in found.items()
                if state in ("Ongoing", "Empty") and name != lease and not self._is_later(name)
            ]
            for name, now in self._describe(unsettled).items():
                if name in kept and kept[name].is_this(now):
                    continue
                if now.state == "Ongoing" or not is_retired(now.timeout_ms):
                    self._coordinators.init(name, retired(now.timeout_ms))
        except CoordinatorError as error:
            what = f"transactions of an earlier attempt cannot be settled: {error}"
            raise refusal(error.code, what, self._prefix) from error
        except UnreachableError as error:
            raise SinkError(f"transactions cannot be settled now: {error}") from error

    def _is_later(self, name: str) -> bool:
        """Whether the id is that of a driver which has taken the job over."""
        attempt = attempt_of(name, self._prefix, self._job)
        return attempt is not None and attempt > self._last_attempt

    def close(self) -> None:
        self._lease.release()
        self._coordinators.close()

    def _describe(self, ids: list[str]) -> dict[str, Transaction]:
        known: dict[str, Transaction] = {}
        for start in range(0, len(ids), _DESCRIBE_AT_ONCE):
            known.update(self._coordinators.describe(ids[start : start + _DESCRIBE_AT_ONCE]))
        return known


def _visible(prepared: list[Committable], known: dict[str, Transaction]) -> list[Committable]:
    """Those that are committed, or may be: of an id that was forgotten nobody knows."""
    return [one for one in prepared if one.id not in known or one.is_committed(known[one.id])]


def _lost(lost: dict[Committable, str], visible: list[Committable]) -> LostOutputError:
    one, why = next(iter(lost.items()))
    more = f", and {len(lost) - 1} more" if len(lost) > 1 else ""
    return LostOutputError(
        f"a checkpoint covers output that cannot be committed, its records are lost: {why}; "
        f"{one.described()}{more}; raise transaction.timeout.ms above the longest time that a job "
        "may be away",
        [each.plain() for each in lost],
        [each.plain() for each in visible],
    )
