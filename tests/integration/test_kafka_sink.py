"""KafkaSink against a real broker, without Spark: messages, guarantees, transactions, the lease."""

from __future__ import annotations

import gc
import threading
import time
from collections import Counter
from collections.abc import Callable
from typing import Any

import psutil
import pytest
from kafka_parts import exactly_once, read_all, sink, values
from patience import until
from sink_parts import begun, committer, open_writer, put

from penstock.common import SerializationSchema
from penstock.connectors.kafka import lease
from penstock.connectors.kafka.coordinator import CoordinatorError, Coordinators
from penstock.connectors.kafka.pool import READY
from penstock.connectors.kafka.transactions import lease_of
from penstock.connectors.sink import Committer, SinkWriter
from penstock.datastream.connectors.base import DeliveryGuarantee
from penstock.datastream.connectors.kafka import (
    KafkaRecordSerializationSchema,
    KafkaSink,
    KafkaTopicSelector,
)
from penstock.errors import ProgramError, RecordError, SinkError, SinkRefusedError
from penstock.testing import local_environment
from penstock.testing.kafka import KafkaBroker

pytestmark = pytest.mark.full("Kafka")

Topic = Callable[..., str]


# --- messages ---------------------------------------------------------------------------------


def test_without_a_schema_text_and_bytes_are_written_as_they_are(
    broker: KafkaBroker, topic: Topic
) -> None:
    name = topic()
    writer = open_writer(sink(broker, name))
    put(writer, "zażółć", b"\xff", {"a": [1, None]}, ("x", 2), 7, None)
    assert writer.prepare_commit()() == []
    found = [message.value() for message in read_all(broker, name)]
    assert found == ["zażółć".encode(), b"\xff", b'{"a": [1, null]}', b'["x", 2]', b"7", None]
    with pytest.raises(RecordError, match="set cannot be written as JSON"):
        put(writer, {1, 2})
    writer.close()


class First(SerializationSchema):
    def serialize(self, value: Any) -> bytes:
        return str(value[0]).encode()


class ByLength(KafkaTopicSelector):
    def __init__(self, topics: list[str]) -> None:
        self.topics = topics

    def apply(self, data: Any) -> str:
        return self.topics[len(data) % 2]


def test_key_headers_timestamp_topic_and_partition(broker: KafkaBroker, topic: Topic) -> None:
    topics = [topic(3), topic(3)]
    schema = KafkaRecordSerializationSchema.builder()
    schema.set_topic_selector(ByLength(topics)).set_key_serialization_schema(First())
    schema.set_value_serialization_schema(First()).set_header_provider(lambda r: [("n", b"1")])
    schema.set_timestamp(lambda record: 1000 + record[0])
    schema.set_partitioner(lambda record, key: int(key) % 3)
    writer = open_writer(sink(broker, schema.build()))
    put(writer, (5,), (4, "even"))
    writer.prepare_commit()()
    writer.close()
    [odd] = read_all(broker, topics[1])
    assert (odd.key(), odd.value(), odd.partition()) == (b"5", b"5", 2)
    assert (odd.timestamp()[1], odd.headers()) == (1005, [("n", b"1")])
    [even] = read_all(broker, topics[0])
    assert (even.value(), even.partition()) == (b"4", 1)


@pytest.mark.parametrize("guarantee", [DeliveryGuarantee.AT_LEAST_ONCE, None])
def test_a_message_has_the_timestamp_of_its_record_unless_the_serializer_sets_one(
    broker: KafkaBroker, topic: Topic, guarantee: DeliveryGuarantee | None
) -> None:
    name = topic()
    schema = KafkaRecordSerializationSchema.builder().set_topic(name)
    before = int(time.time() * 1000)
    for timestamp, timed in ((None, True), (lambda record: 7, False)):
        if timestamp is not None:
            schema.set_timestamp(timestamp)
        serializer = schema.build()
        if guarantee is None:
            made = exactly_once(broker, serializer, name)
        else:
            made = sink(broker, serializer, guarantee)
        assert made.timed is timed
        writer = open_writer(made)
        until(writer.has_room, "room")
        writer.write_timed("a", 1234)
        writer.write_timed("b", None)
        prepared = writer.prepare_commit()()
        if guarantee is None:
            committer(made).commit(prepared)
        writer.close()
    stamps = [message.timestamp()[1] for message in read_all(broker, name)]
    assert stamps[0] == 1234 and stamps[1] >= before and stamps[2:] == [7, 7]


def test_a_record_far_ahead_of_the_brokers_clock_is_an_error(
    broker: KafkaBroker, topic: Topic
) -> None:
    name = topic()
    writer = open_writer(sink(broker, name))
    writer.write_timed("tomorrow", int(time.time() * 1000) + 24 * 3_600_000)
    with pytest.raises(SinkError, match=rf"topic {name}, partition 0: .*[Tt]imestamp"):
        writer.prepare_commit()()
    writer.close()
    assert read_all(broker, name) == []


def test_windows_that_count_write_results_without_event_time(
    broker: KafkaBroker, topic: Topic
) -> None:
    name = topic()
    with local_environment(seed=1) as env:
        counted = env.from_collection(["a"] * 4).key_by(lambda value: value).count_window(2)
        counted.reduce(lambda one, other: one + other).sink_to(sink(broker, name))
        env.execute()
    assert values(read_all(broker, name)) == ["aa", "aa"]


def test_a_message_that_is_too_large_is_an_error(broker: KafkaBroker, topic: Topic) -> None:
    name = topic()
    writer = open_writer(sink(broker, name))
    with pytest.raises(SinkRefusedError, match=rf"topic {name}: a message of 2000000 bytes"):
        put(writer, "x" * 2_000_000)
    writer.close()
    # The client would send it, the broker does not take it.
    writer = open_writer(sink(broker, name, message_max_bytes="5000000"))
    put(writer, "x" * 2_000_000)
    with pytest.raises(SinkRefusedError, match="a message of 2000000 bytes was not delivered"):
        writer.prepare_commit()()
    writer.close()


def test_a_topic_that_is_not_there_is_an_error(broker: KafkaBroker) -> None:
    writer = open_writer(sink(broker, "nowhere", topic_metadata_propagation_max_ms="500"))
    put(writer, "x")
    with pytest.raises(SinkError, match="nowhere"):
        writer.prepare_commit()()
    writer.close()


def test_a_checkpoint_waits_for_deliveries_or_does_not(broker: KafkaBroker, topic: Topic) -> None:
    for guarantee, expected in (
        (DeliveryGuarantee.NONE, []),
        (DeliveryGuarantee.AT_LEAST_ONCE, ["a"]),
    ):
        name = topic()
        # The client keeps messages back for longer than this test takes.
        writer = open_writer(sink(broker, name, guarantee, linger_ms="60000"))
        put(writer, "a")
        assert writer.prepare_commit()() == []
        assert values(read_all(broker, name)) == expected, guarantee
        writer.close()


# --- transactions -----------------------------------------------------------------------------


def test_records_are_visible_when_they_are_committed_and_not_before(
    broker: KafkaBroker, topic: Topic
) -> None:
    name = topic(2)
    built = exactly_once(broker, name, name)
    end, writer = begun(built)
    put(writer, *"abc")
    prepare = writer.prepare_commit()
    put(writer, *"def")
    first = prepare()
    assert read_all(broker, name) == []
    end.commit(first)
    until(lambda: sorted(values(read_all(broker, name))) == ["a", "b", "c"], "abc")
    second = writer.prepare_commit()()
    assert len(first) == len(second) == 1
    assert first[0]["id"] != second[0]["id"]
    covered = sum(part["last"] - part["first"] + 1 for part in first[0]["offsets"])
    assert covered >= 3
    end.commit(first + second)
    end.commit(first + second)
    until(lambda: sorted(values(read_all(broker, name))) == list("abcdef"), "def")
    writer.close()
    end.close()


def test_nothing_written_is_nothing_to_commit(broker: KafkaBroker, topic: Topic) -> None:
    name = topic()
    writer = open_writer(exactly_once(broker, name, name))
    assert writer.prepare_commit()() == []
    writer.close()


def test_ids_are_used_again_and_an_old_committable_changes_nothing(
    broker: KafkaBroker, topic: Topic
) -> None:
    name = topic()
    built = exactly_once(broker, name, name)
    end, writer = begun(built)
    seen: list[Any] = []
    for number in range(12):
        put(writer, str(number))
        prepared = writer.prepare_commit()()
        end.commit(prepared)
        seen.extend(prepared)
        time.sleep(0.1)
    ids = [committable["id"] for committable in seen]
    assert len(set(ids)) <= 6
    assert len({(c["id"], c["epoch"]) for c in seen}) == 12
    # The trap: an id whose next transaction is open, and its old committable once more.
    until(lambda: _open_again(writer, ids, seen, end, name, broker), "a used id")
    end.commit(seen)
    assert values(read_all(broker, name)) == [str(number) for number in range(12)]
    end.abort_others([])
    end.commit(seen)
    writer.close()
    end.close()


def test_an_id_has_an_end_and_every_old_committable_is_known_as_committed(
    broker: KafkaBroker, topic: Topic, monkeypatch: pytest.MonkeyPatch
) -> None:
    name = topic()
    monkeypatch.setattr("penstock.connectors.kafka.pool.TURNS", 3)
    end, writer = begun(exactly_once(broker, name, name))
    seen: list[Any] = []
    for number in range(16):
        put(writer, str(number))
        prepared = writer.prepare_commit()()
        end.commit(prepared)
        seen.extend(prepared)
        until(lambda: writer._pool._ready.qsize() == READY, "the next")
    uses = Counter(committable["id"] for committable in seen)
    assert max(uses.values()) == 3, "ids are used again, but not for ever"
    assert len({(one["id"], one["timeout_ms"]) for one in seen}) == 16
    end.abort_others([])
    end.commit(seen)
    assert values(read_all(broker, name)) == [str(number) for number in range(16)]
    writer.close()
    end.close()


def _open_again(
    writer: SinkWriter, ids: list[str], seen: list[Any], end: Committer, name: str, broker: Any
) -> bool:
    put(writer, "open")
    writer._turn.transactional.production.flush(30)
    return writer._turn.transactional.id in ids


def test_producers_that_are_done_are_gone_at_once_and_prepared_transactions_are_not(
    broker: KafkaBroker, topic: Topic
) -> None:
    name = topic()
    built = exactly_once(broker, name, name)
    end, writer = begun(built)

    def another(number: int, writer: SinkWriter) -> int:
        put(writer, str(number))
        end.commit(writer.prepare_commit()())
        until(lambda: writer._pool._ready.qsize() == READY, "the next")
        return psutil.Process().num_threads()

    gc.disable()  # each producer has threads and connections, which must not wait for it
    try:
        threads = [another(number, writer) for number in range(40)]
        assert max(threads[20:]) <= max(threads[:20]) + 4
        put(writer, "last")
        prepared = writer.prepare_commit()()
        writer.close()
        before = psutil.Process().num_threads()
        del writer
        until(lambda: psutil.Process().num_threads() < before, "their end")
    finally:
        gc.enable()
    end.commit(prepared)
    assert values(read_all(broker, name)) == [*map(str, range(40)), "last"]
    end.close()


def test_a_process_that_is_gone_can_be_committed_for_and_others_are_aborted(
    broker: KafkaBroker, topic: Topic
) -> None:
    name = topic()
    built = exactly_once(broker, name, name)
    end, old = begun(built)
    put(old, "covered")
    covered = old.prepare_commit()()
    put(old, "not covered")
    beyond = old.prepare_commit()()
    put(old, "open")
    old._turn.transactional.production.flush(30)
    end.close()
    # Another process: a new committer, which knows nothing but what the checkpoint holds.
    other = committer(built)
    other.abort_others(covered)
    other.commit(covered)
    other.commit(covered)
    other.abort_others([])
    until(lambda: values(read_all(broker, name)) == ["covered"], "the end")
    with pytest.raises(SinkError) as caught:
        other.commit(beyond)
    assert f"topic {name}, partition 0, offsets " in str(caught.value)
    assert beyond[0]["id"] in str(caught.value)
    # What is left of the old attempt can do nothing any more.
    put(old, "zombie")
    zombie = old.prepare_commit()
    with pytest.raises(SinkError):
        zombie()
    old.close()
    assert values(read_all(broker, name)) == ["covered"]
    other.close()


def test_recovery_with_fewer_writers_settles_all_that_there_were(
    broker: KafkaBroker, topic: Topic
) -> None:
    name = topic()
    built = exactly_once(broker, name, name)
    end = committer(built)
    end.abort_others([])
    three = [open_writer(built, subtask) for subtask in range(3)]
    for subtask, writer in enumerate(three):
        put(writer, f"covered {subtask}")
    covered = [one for writer in three for one in writer.prepare_commit()()]
    for writer in three:
        put(writer, "open")
        writer.flush()
    end.close()
    # The next attempt has one writer, and a checkpoint that names the transactions of three.
    other = committer(built)
    other.abort_others(covered)
    alone = open_writer(built, attempt=2)
    put(alone, "next")
    other.commit(covered)
    other.commit(alone.prepare_commit()())
    expected = ["covered 0", "covered 1", "covered 2", "next"]
    until(lambda: sorted(values(read_all(broker, name))) == expected, "the end")
    for each in (*three, alone, other):
        each.close()


def test_a_transaction_that_timed_out_is_an_error_that_names_its_offsets(
    broker: KafkaBroker, topic: Topic
) -> None:
    name = topic()
    built = exactly_once(broker, name, name, transaction_timeout_ms="10000")
    end, writer = begun(built)
    put(writer, "a", "b")
    prepared = writer.prepare_commit()()
    coordinators = Coordinators({"bootstrap.servers": broker.bootstrap_servers})
    id_ = prepared[0]["id"]
    until(lambda: "Abort" in coordinators.describe([id_])[id_].state, "the timeout")
    with pytest.raises(SinkError, match=f"topic {name}, partition 0, offsets 0 to 1"):
        end.commit(prepared)
    writer.close()
    end.close()


def test_recovery_of_a_prefix_leaves_longer_ones_alone(broker: KafkaBroker, topic: Topic) -> None:
    name = topic()
    longer = exactly_once(broker, name, f"{name}-2")
    end, writer = begun(longer)
    put(writer, "a")
    prepared = writer.prepare_commit()()
    other = committer(exactly_once(broker, name, name))
    other.abort_others([])
    end.commit(prepared)
    assert values(read_all(broker, name)) == ["a"]
    for each in (writer, end, other):
        each.close()


# --- the lease --------------------------------------------------------------------------------


def test_a_prefix_in_use_by_another_live_job_is_refused(broker: KafkaBroker, topic: Topic) -> None:
    name = topic()
    built = exactly_once(broker, name, name)
    one, writer = begun(built, "one")
    put(writer, "a")
    other = committer(built, "two")
    with pytest.raises(SinkError, match=f"prefix '{name}' is in use by another job"):
        other.abort_others([])
    # The job that runs has not noticed.
    one.commit(writer.prepare_commit()())
    assert values(read_all(broker, name)) == ["a"]
    writer.close()
    one.close()
    # And when it has left, the next one need not wait.
    watched = threading.Event()
    other._lease._watch = lambda found: watched.set()
    other.abort_others([])
    assert not watched.is_set()
    other.close()


def test_the_lease_of_a_job_that_died_is_taken_over(
    broker: KafkaBroker, topic: Topic, monkeypatch: pytest.MonkeyPatch
) -> None:
    name = topic()
    monkeypatch.setattr(lease, "WATCH_SECONDS", 1.0)
    built = exactly_once(broker, name, name)
    dead = committer(built, "one")
    monkeypatch.setattr(dead._lease, "_keep", lambda: None)
    dead.abort_others([])
    heir = committer(built, "two")
    heir.abort_others([])
    monkeypatch.undo()
    # Should it come back, it cannot take what it lost.
    dead._lease._held = None
    with pytest.raises(SinkError, match="in use by another job"):
        dead.abort_others([])
    heir.close()


def test_of_two_that_take_a_lease_at_once_one_keeps_it(broker: KafkaBroker) -> None:
    """The broker takes the second for the first, asking again, and answers both alike."""
    coordinators = Coordinators({"bootstrap.servers": broker.bootstrap_servers})
    dead = coordinators.init(lease_of("both"), 60_000)
    one, two = (lease.Lease("both", job, coordinators) for job in ("one", "two"))
    one._mark, two._mark = 10_001, 10_002
    one._held = coordinators.init(lease_of("both"), one._mark, *dead)
    two._held = coordinators.init(lease_of("both"), two._mark, *dead)
    assert one._held == two._held
    with pytest.raises(CoordinatorError, match="is another job's"):
        one._raise(one._held, one._mark)
    assert two._raise(two._held, two._mark)[1] == two._held[1] + 1
    coordinators.close()


# --- what the builder refuses -----------------------------------------------------------------


def test_what_makes_no_sink(broker: KafkaBroker) -> None:
    with pytest.raises(ProgramError, match="set_transactional_id_prefix"):
        sink(broker, "a", DeliveryGuarantee.EXACTLY_ONCE)
    with pytest.raises(ProgramError, match="set_record_serializer"):
        KafkaSink.builder().set_bootstrap_servers("a:1").build()
    with pytest.raises(ProgramError, match="set_topic"):
        KafkaRecordSerializationSchema.builder().build()
    with pytest.raises(ProgramError, match="SASL PLAIN"):
        exactly_once(broker, "a", "a", security_protocol="SASL_SSL", sasl_mechanism="GSSAPI")
    with pytest.raises(ProgramError, match="'/'"):
        exactly_once(broker, "a", "a/b")


def test_transactions_arrive_in_the_order_of_their_records(
    broker: KafkaBroker, topic: Topic
) -> None:
    name = topic()
    # The first waits for company before it is sent, as long as nobody flushes it.
    built = exactly_once(broker, name, name, linger_ms="2000")
    end, writer = begun(built)
    put(writer, "a", "b")
    first = writer.prepare_commit()
    put(writer, "c")
    second = writer.prepare_commit()
    put(writer, "d")
    writer.flush()
    prepared = first() + second()
    prepared += writer.prepare_commit()()
    end.commit(prepared)
    until(lambda: values(read_all(broker, name)) == ["a", "b", "c", "d"], "the end")
    writer.close()
    end.close()
