"""Where a Kafka source starts and where it stops; without a server."""

from __future__ import annotations

from typing import Any

import pytest
from confluent_kafka import Consumer, TopicPartition
from kafka_mock import MockCluster
from kafka_parts import Reading, read, source, write

from penstock.datastream.connectors.kafka import (
    KafkaOffsetResetStrategy,
    KafkaOffsetsInitializer,
    KafkaTopicPartition,
)
from penstock.errors import SourceError

EARLIEST, LATEST = KafkaOffsetResetStrategy.EARLIEST, KafkaOffsetResetStrategy.LATEST
NONE = KafkaOffsetResetStrategy.NONE


def test_a_bounded_source_reads_every_partition_to_its_end(kafka: MockCluster) -> None:
    name = kafka.topic("abc", "de")
    with Reading(source(kafka, name).set_bounded("latest").build()) as reading:
        assert sorted(reading.to_end()) == list("abcde")
        assert reading.reader.snapshot() == []
        assert reading.reader._fetching()._consumer.assignment() == [], "nothing more is fetched"


def test_what_is_written_after_the_start_lies_behind_the_end(kafka: MockCluster) -> None:
    name = kafka.topic("abc")
    with Reading(source(kafka, name).set_bounded("latest").build()) as reading:
        write(kafka, name, "def", partition=0)
        assert reading.to_end() == list("abc")


@pytest.mark.parametrize(
    ("start", "stop", "expected"), [(0, 4, "abcd"), (1, 3, "bc"), (2, 3, "c"), (2, 2, "")]
)
def test_the_offset_to_start_at_is_read_and_the_one_to_stop_at_is_not(
    kafka: MockCluster, start: int, stop: int, expected: str
) -> None:
    place = KafkaTopicPartition(kafka.topic("abcd"), 0)
    builder = source(kafka).set_partitions({place})
    builder.set_starting_offsets(KafkaOffsetsInitializer.offsets({place: start}))
    builder.set_bounded(KafkaOffsetsInitializer.offsets({place: stop}))
    assert read(builder) == list(expected)


def test_a_source_with_nothing_to_read_does_not_wait_for_the_broker(kafka: MockCluster) -> None:
    name = kafka.topic("ab")
    built = source(kafka, name).set_starting_offsets("latest").set_bounded("latest").build()
    with Reading(built) as reading:
        assert reading.ask()
        assert reading.poll() is None
        assert not reading.ask()


def test_an_offset_to_stop_at_may_lie_in_the_future(kafka: MockCluster) -> None:
    place = KafkaTopicPartition(kafka.topic("ab"), 0)
    builder = source(kafka).set_partitions({place})
    builder.set_bounded(KafkaOffsetsInitializer.offsets({place: 3}))
    with Reading(builder.build()) as reading:
        assert reading.take(2) == ["a", "b"]
        write(kafka, place.topic, "cd", partition=0)
        assert reading.to_end() == ["c"]


def test_an_unbounded_source_with_offsets_to_stop_at_comes_to_its_end(kafka: MockCluster) -> None:
    place = KafkaTopicPartition(kafka.topic("abc"), 0)
    builder = source(kafka).set_partitions({place})
    assert read(builder.set_unbounded(KafkaOffsetsInitializer.offsets({place: 2}))) == ["a", "b"]


def test_a_timestamp_behind_the_last_record_is_the_end(kafka: MockCluster) -> None:
    """So says a broker that knows no record so late; this one knows of no timestamps at all."""
    place = KafkaTopicPartition(kafka.topic("abc"), 0)
    built = source(kafka).set_partitions({place}).set_starting_offsets("9999").build()
    with Reading(built) as reading:
        [split] = reading.enumerator.snapshot()["waiting"]
        assert split["offset"] == 3


@pytest.mark.parametrize(
    ("offset", "reset", "expected"),
    [
        (0, NONE, "abc"),
        (3, NONE, ""),
        (4, EARLIEST, "abc"),
        (4, LATEST, ""),
        (-1, EARLIEST, "abc"),
    ],
)
def test_an_offset_that_the_partition_has_is_taken_and_another_is_reset(
    kafka: MockCluster, offset: int, reset: Any, expected: str
) -> None:
    name = kafka.topic("abc")
    place = KafkaTopicPartition(name, 0)
    builder = source(kafka).set_partitions({place}).set_bounded("latest")
    builder.set_starting_offsets(KafkaOffsetsInitializer.offsets({place: offset}, reset))
    assert read(builder) == list(expected)


def test_without_a_reset_it_is_an_error_that_says_which_there_are(kafka: MockCluster) -> None:
    place = KafkaTopicPartition(kafka.topic("abc"), 0)
    builder = source(kafka).set_partitions({place}).set_bounded("latest")
    builder.set_starting_offsets(KafkaOffsetsInitializer.offsets({place: 4}, NONE))
    expected = f"topic {place.topic}, partition 0: .* the offset 4 .* holds 0 to 3"
    with pytest.raises(SourceError, match=expected):
        read(builder)


def test_a_restored_offset_that_is_gone_is_an_error_and_nothing_is_passed_over(
    kafka: MockCluster,
) -> None:
    name = kafka.topic("abc")
    split = {"topic": name, "partition": 0, "offset": 7, "stop": None}
    built = source(kafka, name).build()
    with (
        pytest.raises(SourceError, match=f"topic {name}, partition 0, offset 7: it is not there"),
        Reading(built, {"known": [[name, 0]], "waiting": []}, [split]) as reading,
    ):
        reading.take(1)


def test_the_offsets_of_a_group_are_those_it_committed(kafka: MockCluster) -> None:
    name = kafka.topic("abcd", "xy")
    consumer = Consumer({"bootstrap.servers": kafka.bootstrap_servers, "group.id": f"g-{name}"})
    consumer.commit(offsets=[TopicPartition(name, 0, 3)], asynchronous=False)
    consumer.close()
    builder = source(kafka, name).set_group_id(f"g-{name}").set_bounded("latest")
    committed = KafkaOffsetsInitializer.committed_offsets(LATEST)
    assert read(builder.set_starting_offsets(committed)) == ["d"]
    with pytest.raises(SourceError, match=r"partition 1: .* no offset \(committed\)"):
        read(builder.set_starting_offsets("committed"))
