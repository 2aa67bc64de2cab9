"""Which Kafka transactions a committer commits, fences and leaves alone; without a server."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest
from transactions_in_memory import FENCED, TransactionsInMemory

from penstock.connectors.kafka.committer import KafkaCommitter
from penstock.connectors.kafka.coordinator import CoordinatorError, UnreachableError
from penstock.connectors.kafka.transactions import (
    TURNS,
    Committable,
    is_retired,
    lease_of,
    retired,
    timeout_of_turn,
)
from penstock.errors import LostOutputError, SinkError, SinkRefusedError

LOST = "records are lost: .*transaction out/job/w/1 .*topic out, partition 3, offsets 10 to 19"


@pytest.fixture
def cluster() -> TransactionsInMemory:
    return TransactionsInMemory()


@pytest.fixture
def committer(cluster: TransactionsInMemory) -> Iterator[KafkaCommitter]:
    made = KafkaCommitter("out", "job", cluster)
    yield made
    made.close()


def plain(*committables: Committable) -> list[Any]:
    return [one.plain() for one in committables]


# --- committing -------------------------------------------------------------------------------


def test_what_is_prepared_is_committed_and_committing_again_is_harmless(
    cluster: TransactionsInMemory, committer: KafkaCommitter
) -> None:
    prepared = plain(cluster.begin("out/job/w/1"), cluster.begin("out/job/w/2"))
    committer.commit(prepared)
    assert cluster.states() == {"out/job/w/1": "CompleteCommit", "out/job/w/2": "CompleteCommit"}
    committer.commit(prepared)


@pytest.mark.parametrize(
    "name", ["other/job/w/1", "out-2/job/w/1", "out", "", lease_of("out"), "/out/job/w/1"]
)
def test_a_checkpoint_cannot_have_transactions_of_others_committed(
    cluster: TransactionsInMemory, committer: KafkaCommitter, name: str
) -> None:
    """Its files are data, and may have been altered."""
    prepared = plain(cluster.begin("out/job/w/1"), cluster.begin(name))
    for commit in (committer.check, committer.commit):
        with pytest.raises(SinkRefusedError, match="none of the transactional id prefix 'out'"):
            commit(prepared)
    assert set(cluster.states().values()) == {"Ongoing"}


def test_an_id_that_is_used_again_says_that_its_old_transaction_is_committed(
    cluster: TransactionsInMemory, committer: KafkaCommitter
) -> None:
    old = cluster.begin("out/job/w/1", timeout_of_turn(60_000, 0))
    committer.commit(plain(old))
    cluster.begin("out/job/w/1", timeout_of_turn(60_000, 1))
    committer.commit(plain(old))
    assert cluster.states() == {"out/job/w/1": "Ongoing"}, "the new one is not committed with it"


@pytest.mark.parametrize("producer_changed", [False, True])
@pytest.mark.parametrize("fenced", [False, True])
def test_an_id_that_came_round_to_the_same_turn_is_not_taken_for_a_fenced_one(
    producer_changed: bool, fenced: bool, cluster: TransactionsInMemory, committer: KafkaCommitter
) -> None:
    """As older versions used an id: without an end, its turns counted in a circle."""
    if producer_changed:
        cluster.use_up_epochs("out/job/w/1", left=100)
    old = cluster.begin("out/job/w/1", timeout_of_turn(60_000, 7))
    committer.commit(plain(old))
    for turn in range(8, 7 + TURNS):
        later = cluster.begin("out/job/w/1", timeout_of_turn(60_000, turn % TURNS))
        cluster.end(later.id, later.producer_id, later.epoch, commit=True)
    now = cluster.begin("out/job/w/1", old.timeout_ms)
    assert (now.producer_id != old.producer_id) is producer_changed
    if fenced:
        committer.abort_others([])
    committer.commit(plain(old))
    assert cluster.states()["out/job/w/1"] == ("Empty" if fenced else "Ongoing")


@pytest.mark.parametrize("left", [1, 2, 3])
def test_a_transaction_that_was_fenced_at_the_last_epoch_of_its_producer_is_lost_output(
    left: int, cluster: TransactionsInMemory, committer: KafkaCommitter
) -> None:
    cluster.use_up_epochs("out/job/w/1", left)
    one = cluster.begin("out/job/w/1")
    for _ in range(2):  # as a broker does: one epoch to fence the old one, one for the new one
        cluster.init(one.id, retired(one.timeout_ms))
    with pytest.raises(SinkError, match=LOST):
        committer.commit(plain(one))


def test_a_transaction_that_the_broker_is_committing_needs_nothing(
    cluster: TransactionsInMemory, committer: KafkaCommitter
) -> None:
    one = cluster.begin("out/job/w/1")
    cluster.now[one.id] = replace(cluster.now[one.id], state="PrepareCommit")
    committer.commit(plain(one))


def test_a_transaction_that_the_cluster_forgot_is_lost_output(
    cluster: TransactionsInMemory, committer: KafkaCommitter
) -> None:
    prepared = plain(cluster.begin("out/job/w/1"))
    cluster.now.clear()
    with pytest.raises(LostOutputError, match=LOST) as raised:
        committer.commit(prepared)
    assert list(raised.value.lost) == prepared
    assert list(raised.value.visible) == prepared, "it may have been committed: nobody knows"


def test_what_is_visible_is_what_is_committed_or_forgotten(
    cluster: TransactionsInMemory, committer: KafkaCommitter
) -> None:
    prepared = plain(*(cluster.begin(f"out/job/w/{number}") for number in range(4)))
    committer.commit(prepared[:1])
    del cluster.now["out/job/w/1"]
    cluster.init("out/job/w/2", retired(60_000))
    assert committer.visible(prepared) == prepared[:2]


@pytest.mark.parametrize("forgotten", [True, False])
def test_an_id_that_is_forgotten_while_it_is_committed_may_be_visible(
    forgotten: bool,
    cluster: TransactionsInMemory,
    committer: KafkaCommitter,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    [one] = prepared = plain(cluster.begin("out/job/w/1"))

    def end(*args: Any, **kwargs: Any) -> None:
        cluster.init("out/job/w/1", retired(60_000))
        if forgotten:
            cluster.now.clear()
        raise CoordinatorError(FENCED, "out/job/w/1")

    monkeypatch.setattr(cluster, "end", end)
    with pytest.raises(LostOutputError, match=LOST) as raised:
        committer.commit(prepared)
    assert raised.value.visible == ((one,) if forgotten else ())


def test_a_transaction_that_timed_out_is_lost_output(
    cluster: TransactionsInMemory, committer: KafkaCommitter
) -> None:
    one = cluster.begin("out/job/w/1")
    cluster.end(one.id, one.producer_id, one.epoch, commit=False)
    with pytest.raises(SinkError, match=r"not open any more \(CompleteAbort.*offsets 10 to 19"):
        committer.commit(plain(one))


def test_a_transaction_that_was_fenced_is_lost_output(
    cluster: TransactionsInMemory, committer: KafkaCommitter
) -> None:
    one = cluster.begin("out/job/w/1")
    cluster.init(one.id, retired(one.timeout_ms))
    with pytest.raises(SinkError, match=LOST):
        committer.commit(plain(one))


def test_the_next_transaction_of_the_same_producer_is_not_committed_in_its_place(
    cluster: TransactionsInMemory, committer: KafkaCommitter
) -> None:
    one = cluster.begin("out/job/w/1")
    cluster.end(one.id, one.producer_id, one.epoch, commit=False)
    cluster.begin_next(one.id)
    with pytest.raises(SinkError, match=LOST):
        committer.commit(plain(one))
    assert cluster.now[one.id].state == "Ongoing"


@pytest.mark.parametrize("committed", [True, False])
def test_a_refusal_is_no_error_if_an_earlier_request_has_committed(
    committed: bool,
    cluster: TransactionsInMemory,
    committer: KafkaCommitter,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    one, end = cluster.begin("out/job/w/1"), cluster.end

    def asked_twice(*args: Any, **kwargs: Any) -> None:
        """The answer to the first request was lost; this is the answer to the second."""
        if committed:
            end(*args, **kwargs)
        raise CoordinatorError(FENCED, one.id)

    monkeypatch.setattr(cluster, "end", asked_twice)
    if committed:
        committer.commit(plain(one))
    else:
        with pytest.raises(SinkError, match=LOST):
            committer.commit(plain(one))


def test_many_transactions_are_asked_for_in_several_requests(
    cluster: TransactionsInMemory, committer: KafkaCommitter
) -> None:
    committer.commit(plain(*(cluster.begin(f"out/job/w/{n}") for n in range(1_001))))
    assert set(cluster.states().values()) == {"CompleteCommit"}
    assert cluster.described == [500, 500, 1]


@pytest.mark.parametrize("longest_ms", [10_000, 900_001])
def test_the_timeout_tells_turns_apart_and_is_never_longer_than_allowed(longest_ms: int) -> None:
    timeouts = [timeout_of_turn(longest_ms, turn) for turn in range(TURNS)]
    assert len({retired(timeout) for timeout in timeouts}) == TURNS
    assert not any(map(is_retired, timeouts))
    assert max(map(retired, timeouts)) <= longest_ms
    assert min(timeouts) >= longest_ms - 1_001


# --- fencing ----------------------------------------------------------------------------------


def test_everything_open_is_fenced_but_what_a_checkpoint_covers(
    cluster: TransactionsInMemory, committer: KafkaCommitter
) -> None:
    covered, beyond = cluster.begin("out/job/w/1"), cluster.begin("out/job/w/2")
    committer.abort_others(plain(covered))
    assert cluster.now[covered.id].state == "Ongoing"
    assert cluster.now[beyond.id].state == "Empty"
    assert is_retired(cluster.now[beyond.id].timeout_ms)
    committer.commit(plain(covered))
    with pytest.raises(SinkError, match="is not open any more"):
        committer.commit(plain(beyond))


def test_transactions_of_a_driver_that_has_taken_the_job_over_are_left_alone(
    cluster: TransactionsInMemory,
) -> None:
    """By a driver that stood still before it looked, and goes on."""
    names = ("out/job/1000001-0-ab/1", "out/job/1000000-0-ab/1", "out/other/1000001-0-ab/1")
    later, earlier, other = (cluster.begin(name) for name in names)
    cluster.init("out/job/1000001-1-ab/1", 60_000)
    before = KafkaCommitter("out", "job", cluster, last_attempt=1_000_000)
    before.abort_others([])
    before.close()
    assert cluster.now[later.id].state == "Ongoing"
    assert not is_retired(cluster.now["out/job/1000001-1-ab/1"].timeout_ms)
    assert is_retired(cluster.now[earlier.id].timeout_ms)
    assert is_retired(cluster.now[other.id].timeout_ms)


def test_an_open_transaction_is_fenced_whatever_its_timeout_says(
    cluster: TransactionsInMemory, committer: KafkaCommitter
) -> None:
    """A writer of another program may use the prefix, with a timeout that looks retired."""
    strange = cluster.begin("out/job/w/1", retired(60_000))
    committer.abort_others([])
    assert cluster.now[strange.id].state == "Empty"
    assert is_retired(cluster.now[strange.id].timeout_ms)


def test_a_later_transaction_under_the_id_of_a_covered_one_is_fenced(
    cluster: TransactionsInMemory, committer: KafkaCommitter
) -> None:
    covered = cluster.begin("out/job/w/1", timeout_of_turn(60_000, 0))
    committer.commit(plain(covered))
    later = cluster.begin(covered.id, timeout_of_turn(60_000, 1))
    committer.abort_others(plain(covered))
    assert cluster.now[later.id].state == "Empty"
    committer.commit(plain(covered))


def test_an_id_that_could_begin_a_transaction_is_retired_once(
    cluster: TransactionsInMemory, committer: KafkaCommitter
) -> None:
    before = cluster.init("out/job/w/1", 60_000)
    committer.abort_others([])
    now = cluster.now["out/job/w/1"]
    assert is_retired(now.timeout_ms)
    assert (now.producer_id, now.epoch) == (before[0], before[1] + 1), "its producer is fenced"
    committer.abort_others([])
    assert cluster.now["out/job/w/1"] == now


def test_what_is_settled_and_what_belongs_to_others_is_left_alone(
    cluster: TransactionsInMemory, committer: KafkaCommitter
) -> None:
    committed, aborted = cluster.begin("out/job/w/1"), cluster.begin("out/job/w/2")
    committer.commit(plain(committed))
    cluster.end(aborted.id, aborted.producer_id, aborted.epoch, commit=False)
    cluster.begin("out-2/job/w/1")
    before = dict(cluster.now)
    committer.abort_others([])
    lease = cluster.now.pop(lease_of("out"))
    assert cluster.now == before
    assert lease.epoch == 0, "it was taken and not fenced"


# --- the lease, and a cluster that is away ----------------------------------------------------


def test_the_prefix_is_held_until_the_committer_is_closed(
    cluster: TransactionsInMemory, committer: KafkaCommitter, monkeypatch: pytest.MonkeyPatch
) -> None:
    committer.abort_others([])
    other = KafkaCommitter("out", "other", cluster)

    def raised(seconds: float) -> None:
        """While somebody watches, the job that holds the lease raises its epoch."""
        lease = committer._lease
        lease._held = lease._raise(lease._held, lease._mark)

    monkeypatch.setattr("penstock.connectors.kafka.lease.time.sleep", raised)
    with pytest.raises(SinkError, match="the transactional id prefix 'out' is in use"):
        other.abort_others([])
    committer.close()
    assert cluster.closed
    other.abort_others([])
    other.close()


def test_a_transaction_that_cannot_be_fenced_is_an_error(
    cluster: TransactionsInMemory, committer: KafkaCommitter, monkeypatch: pytest.MonkeyPatch
) -> None:
    committer.abort_others([])
    cluster.begin("out/job/w/1")

    def refuse(name: str, timeout_ms: int) -> Any:
        raise CoordinatorError(FENCED, name)

    monkeypatch.setattr(cluster, "init", refuse)
    with pytest.raises(SinkError, match="transactions of an earlier attempt cannot be settled"):
        committer.abort_others([])
    monkeypatch.undo()


def test_a_cluster_that_is_away_is_an_error_that_says_so(
    cluster: TransactionsInMemory, committer: KafkaCommitter, monkeypatch: pytest.MonkeyPatch
) -> None:
    prepared = plain(cluster.begin("out/job/w/1"))

    def away(ids: list[str]) -> Any:
        raise UnreachableError("no answer")

    monkeypatch.setattr(cluster, "describe", away)
    with pytest.raises(SinkError, match="cannot be committed now: no answer"):
        committer.commit(prepared)
    with pytest.raises(SinkError, match="cannot be settled now: no answer"):
        committer.abort_others([])
