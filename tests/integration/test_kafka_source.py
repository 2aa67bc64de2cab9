"""KafkaSource against a real broker, without Spark: offsets, decoders, discovery, positions."""

from __future__ import annotations

import time
from collections.abc import Callable

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition
from kafka_parts import Reading, read, source, write
from patience import until

from penstock.common import ByteArraySchema, DeserializationSchema
from penstock.datastream.connectors.kafka import (
    ConsumerRecord,
    JsonSchema,
    KafkaOffsetResetStrategy,
    KafkaOffsetsInitializer,
    KafkaTopicPartition,
)
from penstock.errors import ProgramError, RecordError, SourceError
from penstock.testing.kafka import KafkaBroker

pytestmark = pytest.mark.full("Kafka")

Topic = Callable[..., str]


class Doubled(DeserializationSchema):
    def deserialize(self, message: bytes) -> int:
        return 2 * int(message)


# --- what a record is -------------------------------------------------------------------------


def test_without_a_deserializer_a_record_is_a_string(broker: KafkaBroker, topic: Topic) -> None:
    name = topic()
    write(broker, name, ["zażółć", "b", {"value": None, "key": "gone"}])
    assert read(source(broker, name).set_bounded("latest")) == ["zażółć", "b", None]


def test_schemas_of_ones_own_json_and_bytes(broker: KafkaBroker, topic: Topic) -> None:
    name = topic()
    write(broker, name, ["1", "22"])
    for schema, expected in (
        (Doubled(), [2, 44]),
        (JsonSchema(), [1, 22]),
        (ByteArraySchema(), [b"1", b"22"]),
    ):
        builder = source(broker, name).set_bounded("latest").set_value_only_deserializer(schema)
        assert read(builder) == expected


def test_keys_and_whole_records(broker: KafkaBroker, topic: Topic) -> None:
    name = topic()
    message = {"key": "k", "value": '{"a": 1}', "headers": [("h", b"1"), ("h", None)]}
    write(broker, name, [{**message, "timestamp": 1234}])
    pairs = source(broker, name).set_bounded("latest")
    assert read(pairs.set_key_value_deserializer(None, JsonSchema())) == [("k", {"a": 1})]
    whole = (
        source(broker, name).set_bounded("latest").set_record_deserializer(None, None, JsonSchema())
    )
    headers = (("h", b"1"), ("h", None))
    assert read(whole) == [ConsumerRecord(name, 0, 0, 1234, "k", {"a": 1}, headers)]
    raw = source(broker, name).set_bounded("latest")
    raw = raw.set_record_deserializer(lambda record: (record.key, record.value, record.offset))
    assert read(raw) == [(b"k", b'{"a": 1}', 0)]


def test_a_poison_message_is_an_error_with_its_place(broker: KafkaBroker, topic: Topic) -> None:
    name = topic(2)
    write(broker, name, ["1", "2"], partition=1)
    write(broker, name, [b"\xff" * 500, "3"], partition=1)
    with pytest.raises(RecordError) as caught:
        read(source(broker, name).set_bounded("latest"))
    assert caught.value.place == f"topic {name}, partition 1, offset 2"
    assert str(caught.value).startswith(caught.value.place)
    assert len(str(caught.value)) < 800


def test_a_poison_message_is_skipped_and_counted_on_request(
    broker: KafkaBroker, topic: Topic
) -> None:
    name = topic()
    write(broker, name, ["1", "x", "3"])
    builder = source(broker, name).set_bounded("latest").skip_bad_records()
    with Reading(builder.set_value_only_deserializer(Doubled()).build()) as reading:
        assert reading.to_end() == [2, 6]
        assert reading.metrics()["numRecordsInErrors"] == 1


# --- where reading starts and stops -----------------------------------------------------------


def test_a_timestamp_and_explicit_offsets(broker: KafkaBroker, topic: Topic) -> None:
    name = topic(2)
    write(broker, name, [{"value": str(n), "timestamp": 1000 + n} for n in range(5)], partition=0)
    place, other = KafkaTopicPartition(name, 0), KafkaTopicPartition(name, 1)
    initial = KafkaOffsetsInitializer
    for start, expected in (
        ("earliest", "01234"),
        ("latest", ""),
        ("1003", "34"),
        (initial.timestamp(1002), "234"),
        (initial.timestamp(9999), ""),
        (initial.offsets({place: 3}), "34"),
        (initial.offsets({place: 99}), "01234"),
        (initial.offsets({place: 99}, KafkaOffsetResetStrategy.LATEST), ""),
    ):
        builder = source(broker, name).set_starting_offsets(start).set_bounded("latest")
        assert "".join(read(builder)) == expected, start
    stops = initial.offsets({place: 2, other: 0})
    assert read(source(broker, name).set_bounded(stops)) == ["0", "1"]
    assert read(source(broker, name).set_unbounded(stops)) == ["0", "1"]


def test_an_offset_that_is_not_there_is_an_error_without_a_reset(
    broker: KafkaBroker, topic: Topic
) -> None:
    name = topic()
    start = KafkaOffsetsInitializer.offsets(
        {KafkaTopicPartition(name, 0): 99}, KafkaOffsetResetStrategy.NONE
    )
    with pytest.raises(SourceError, match=f"topic {name}, partition 0: .*99.*0 to 0"):
        read(source(broker, name).set_starting_offsets(start).set_bounded("latest"))


def test_committed_offsets_and_what_is_committed_at_checkpoints(
    broker: KafkaBroker, topic: Topic
) -> None:
    name, group = topic(), f"group-{time.time_ns()}"
    write(broker, name, "abcd")
    builder = source(broker, name).set_group_id(group).set_bounded("latest")
    with pytest.raises(SourceError, match="no offset"):
        read(builder.set_starting_offsets("committed"))
    initial = KafkaOffsetsInitializer.committed_offsets(KafkaOffsetResetStrategy.EARLIEST)
    with Reading(builder.set_starting_offsets(initial).build()) as reading:
        reading.ask()
        until(lambda: reading.poll(3), "records")
        splits = reading.reader.snapshot()
        reading.reader.covered(splits)
        until(lambda: reading.metrics()["pendingRecords"], "the ends")
        metrics = reading.metrics()
        place = f"KafkaSourceReader.topic.{name}.partition.0"
        assert metrics[f"{place}.currentOffset"] == splits[0]["offset"] - 1
        assert metrics["pendingRecords"] == 4 - splits[0]["offset"]
        consumer = Consumer({"bootstrap.servers": broker.bootstrap_servers, "group.id": group})
        asked = [TopicPartition(name, 0)]
        until(lambda: consumer.committed(asked)[0].offset == splits[0]["offset"], "the commit")
        consumer.close()
        reading.to_end()
        reading.reader.covered(reading.reader.snapshot())
        until(lambda: reading.metrics()[f"{place}.committedOffset"] == 4, "the answer", 60)
    write(broker, name, "e")
    assert read(builder.set_starting_offsets("committed")) == ["e"]


def test_the_end_behind_the_marks_of_transactions_is_found(
    broker: KafkaBroker, topic: Topic
) -> None:
    name = topic()
    settings = {"bootstrap.servers": broker.bootstrap_servers, "transactional.id": name}
    producer = Producer(settings)
    producer.init_transactions()
    for value, commit in (("a", True), ("b", False), ("c", True), ("d", False)):
        producer.begin_transaction()
        producer.produce(name, value)
        producer.flush()
        (producer.commit_transaction if commit else producer.abort_transaction)()
    assert read(source(broker, name).set_bounded("latest")) == ["a", "c"]
    everything = source(broker, name).set_property("isolation.level", "read_uncommitted")
    assert read(everything.set_bounded("latest")) == ["a", "b", "c", "d"]


# --- which partitions -------------------------------------------------------------------------


def test_several_topics_a_pattern_and_partitions(broker: KafkaBroker, topic: Topic) -> None:
    one, two = topic(2), topic(1)
    write(broker, one, "a", partition=0)
    write(broker, one, "b", partition=1)
    write(broker, two, "c")
    assert sorted(read(source(broker, one, two).set_bounded("latest"))) == ["a", "b", "c"]
    pattern = source(broker).set_topic_pattern(f"({one}|{two}x?)")
    assert sorted(read(pattern.set_bounded("latest"))) == ["a", "b", "c"]
    chosen = source(broker).set_partitions({KafkaTopicPartition(one, 1)})
    assert read(chosen.set_bounded("latest")) == ["b"]


def test_a_topic_that_is_not_there_is_an_error(broker: KafkaBroker) -> None:
    with pytest.raises(SourceError, match="there is no topic nowhere"):
        read(source(broker, "nowhere").set_bounded("latest"))


def test_a_partition_that_appears_is_read_from_its_beginning(
    broker: KafkaBroker, topic: Topic
) -> None:
    name = topic(1)
    write(broker, name, "a", partition=0)
    builder = source(broker, name).set_property("partition.discovery.interval.ms", "100")
    with Reading(builder.set_starting_offsets("latest").build()) as reading:
        reading.ask()
        assert len(reading.reader.active_splits()) == 1
        broker.create_topic(name, 2)
        write(broker, name, "b", partition=1)
        assert reading.enumerator.ask_again_ms(0) == 100
        until(lambda: reading.ask() and len(reading.reader.active_splits()) == 2, "discovery")
        assert until(lambda: reading.poll(), "the record") == ["b"]
        assert reading.reader.split_of_last_poll() == (name, 1)


def test_a_partition_that_appears_while_the_job_is_stopped_is_read(
    broker: KafkaBroker, topic: Topic
) -> None:
    """Also by a source with an end, which does not look for partitions while it runs."""
    name = topic(1)
    write(broker, name, "ab", partition=0)
    built = source(broker, name).set_bounded("latest").build()
    with Reading(built) as reading:
        assert reading.to_end() == ["a", "b"]
        stopped, positions = reading.enumerator.snapshot(), reading.reader.snapshot()
    broker.create_topic(name, 2)
    write(broker, name, "cd", partition=1)
    with Reading(built, stopped, positions) as reading:
        assert reading.to_end() == ["c", "d"]


def test_a_deleted_topic_is_an_error_that_names_it(broker: KafkaBroker, topic: Topic) -> None:
    name = topic()
    write(broker, name, "a")
    builder = source(broker, name).set_property("partition.discovery.interval.ms", "100")
    with Reading(builder.build()) as reading:
        assert reading.take(1) == ["a"]
        broker.delete_topic(name)
        with pytest.raises(SourceError, match=name):
            until(lambda: reading.poll() or not reading.ask(), "the error")


# --- positions --------------------------------------------------------------------------------


def test_each_poll_is_of_one_partition_and_positions_are_behind_it(
    broker: KafkaBroker, topic: Topic
) -> None:
    name = topic(3)
    for number in range(3):
        write(broker, name, [f"{number}:{n}" for n in range(1000)], partition=number)
    built = source(broker, name).set_bounded("latest").build()
    seen: list[str] = []
    enumerator, splits, polls = None, [], 0
    while True:
        with Reading(built, enumerator, splits) as reading:
            # A new enumerator first looks for partitions, and has nothing to give until then.
            before = polls
            while polls < before + 7:
                records = reading.poll(97)
                while records == []:
                    time.sleep(0.002)
                    records = reading.poll(97)
                if records is None:
                    if not reading.ask():
                        assert sorted(seen) == sorted(
                            f"{number}:{n}" for number in range(3) for n in range(1000)
                        )
                        by_partition = [[r for r in seen if r[0] == str(n)] for n in range(3)]
                        assert all(
                            part == sorted(part, key=lambda r: int(r[2:])) for part in by_partition
                        )
                        assert polls > 20
                        return
                    time.sleep(0.002)
                    continue
                polls += 1
                assert {record[0] for record in records} == {
                    str(reading.reader.split_of_last_poll()[1])
                }
                seen.extend(records)
            enumerator, splits = reading.enumerator.snapshot(), reading.reader.snapshot()


def test_a_reader_that_is_not_polled_fetches_a_bounded_amount(
    broker: KafkaBroker, topic: Topic
) -> None:
    name = topic()
    write(broker, name, [b"x" * 1000] * 60_000)
    builder = source(broker, name).set_property("queued.max.messages.kbytes", "1024")
    builder = builder.set_property("queued.min.messages", "1000")
    with Reading(builder.set_bounded("latest").build()) as reading:
        reading.ask()
        until(lambda: reading.poll(1), "the first record")
        time.sleep(0.5)
        # What waits in the client is there at once.
        assert 0 < len(reading.reader._fetching()._consumer.consume(60_000, 0)) < 15_000
    assert len(read(builder)) == 60_000


def test_timestamps_travel_where_the_engine_wants_them(broker: KafkaBroker, topic: Topic) -> None:
    name = topic()
    write(broker, name, [{"value": "a", "timestamp": 77}])
    built = source(broker, name).set_bounded("latest").build()
    assert built.timed
    with Reading(built, timed=True) as reading:
        assert reading.to_end() == [("a", 77)]


# --- what the builder refuses -----------------------------------------------------------------


def test_what_makes_no_source(broker: KafkaBroker) -> None:
    with pytest.raises(ProgramError, match="set_topics"):
        source(broker).build()
    with pytest.raises(ProgramError, match="set_bootstrap_servers"):
        type(source(broker))().set_topics("a").build()
    with pytest.raises(ProgramError, match="once"):
        source(broker, "a").set_topics("b")
    with pytest.raises(ProgramError, match="'soonest'"):
        source(broker, "a").set_starting_offsets("soonest")
    with pytest.raises(ProgramError, match="set_group_id"):
        source(broker, "a").set_starting_offsets("committed").build()
    with pytest.raises(ProgramError, match=r"sasl\.username"):
        source(broker, "a").set_property("sasl.jaas.config", "x")
