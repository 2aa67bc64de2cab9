"""The right to use a transactional id prefix: who has it when several want it; without a server."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest
from patience import until
from transactions_in_memory import TransactionsInMemory

from penstock.connectors.kafka import lease as leases
from penstock.connectors.kafka.coordinator import Transaction
from penstock.connectors.kafka.lease import Lease
from penstock.connectors.kafka.transactions import lease_of
from penstock.errors import SinkError

LEASE = lease_of("out")


@pytest.fixture
def cluster() -> TransactionsInMemory:
    return TransactionsInMemory()


@pytest.fixture
def lease_for(
    cluster: TransactionsInMemory, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Callable[[str], Lease]]:
    """Makes leases that are raised often and watched for a moment; releases them."""
    monkeypatch.setattr(leases, "RAISE_SECONDS", 0.002)
    monkeypatch.setattr(leases, "WATCH_SECONDS", 0.02)
    made: list[Lease] = []

    def make(job: str) -> Lease:
        made.append(Lease("out", job, cluster))
        return made[-1]

    yield make
    for each in made:
        each.release()


def test_it_is_raised_while_it_is_held_and_no_longer(
    cluster: TransactionsInMemory, lease_for: Callable[[str], Lease]
) -> None:
    lease = lease_for("one")
    lease.take()
    until(lambda: cluster.now[LEASE].epoch > 3, "it is raised")
    lease.release()
    assert cluster.now[LEASE].timeout_ms == leases._RELEASED_MS


def test_the_lease_of_a_job_that_died_is_taken_over(
    cluster: TransactionsInMemory, lease_for: Callable[[str], Lease]
) -> None:
    cluster.init(LEASE, 60_000)
    lease_for("two").take()
    until(lambda: cluster.now[LEASE].epoch > 3, "it is raised")


@pytest.fixture
def two(cluster: TransactionsInMemory, lease_for: Callable[[str], Lease]) -> tuple[Lease, Lease]:
    """Two that saw the same epoch of a job that died, and took the lease one after the other."""
    dead = cluster.init(LEASE, 60_000)
    one, other = lease_for("one"), lease_for("other")
    one._mark, other._mark = 10_001, 10_002
    for each in (one, other):
        each._held = cluster.init(LEASE, each._mark, *dead)
    assert one._held == other._held, "the broker took the second for the first, asking again"
    return one, other


def test_of_two_that_take_it_at_once_one_keeps_it(two: tuple[Lease, Lease]) -> None:
    one, other = two
    one._keep()
    with pytest.raises(SinkError, match="has been taken over by another job"):
        one.take()
    other._held = other._raise(other._held, other._mark)


def test_one_that_lost_it_has_it_again_when_the_other_has_released_it(
    cluster: TransactionsInMemory, two: tuple[Lease, Lease]
) -> None:
    one, other = two
    one._keep()
    other.release()
    with pytest.raises(SinkError, match="has been taken over by another job"):
        one.take()
    one.take()
    until(lambda: cluster.now[LEASE].timeout_ms == one._mark, "it is held")


def test_one_that_lost_it_and_has_not_noticed_does_not_release_it(
    cluster: TransactionsInMemory, two: tuple[Lease, Lease]
) -> None:
    one, other = two
    one.release()
    assert cluster.now[LEASE].timeout_ms == other._mark


def test_one_that_is_taken_at_the_last_moment_is_refused(
    cluster: TransactionsInMemory,
    lease_for: Callable[[str], Lease],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    cluster.init(LEASE, 60_000)
    lease = lease_for("two")

    def taken(found: Transaction) -> None:
        another = cluster.init(LEASE, 10_001, found.producer_id, found.epoch)
        cluster.init(LEASE, 10_001, *another)

    monkeypatch.setattr(lease, "_watch", taken)
    with pytest.raises(SinkError, match="was just taken by another job"):
        lease.take()


def test_one_that_is_released_while_somebody_waits_for_it_is_free(
    cluster: TransactionsInMemory,
    lease_for: Callable[[str], Lease],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    held = cluster.init(LEASE, 60_000)

    def leave(seconds: float) -> None:
        cluster.init(LEASE, leases._RELEASED_MS, *held)

    monkeypatch.setattr("penstock.connectors.kafka.lease.time.sleep", leave)
    lease = lease_for("two")
    lease.take()
    assert cluster.now[LEASE].timeout_ms == lease._mark
