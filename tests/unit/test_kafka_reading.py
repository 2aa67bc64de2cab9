"""How a Kafka source reads: positions, polls, pauses and commits; without a server."""

from __future__ import annotations

import threading
from typing import Any

import pytest
from confluent_kafka import Consumer, TopicPartition
from kafka_mock import MockCluster
from kafka_parts import Reading, source, write
from patience import PATIENCE, until

from penstock.common import DeserializationSchema
from penstock.connectors.bad_records import BadRecord
from penstock.connectors.kafka.fetcher import Batch
from penstock.datastream.connectors.kafka import KafkaTopicPartition
from penstock.errors import RecordError


class Number(DeserializationSchema):
    def deserialize(self, message: bytes) -> int:
        return int(message)


def bounded(kafka: MockCluster, *partitions: str) -> Any:
    return source(kafka, kafka.topic(*partitions)).set_bounded("latest").build()


# --- positions --------------------------------------------------------------------------------


@pytest.mark.parametrize("count", range(1, 7))
def test_a_restored_reader_goes_on_behind_the_last_record(kafka: MockCluster, count: int) -> None:
    built = bounded(kafka, "abcdef")
    with Reading(built) as before:
        read = before.take(count)
        enumerator, splits = before.enumerator.snapshot(), before.reader.snapshot()
    with Reading(built, enumerator, splits) as after:
        assert read + after.to_end() == list("abcdef")


def test_a_position_stands_behind_what_was_polled_and_not_what_was_fetched(
    kafka: MockCluster,
) -> None:
    with Reading(source(kafka, kafka.topic("abcdef")).build()) as reading:
        for count, expected in ((2, 2), (1, 3), (3, 6)):
            reading.take(count)
            offsets = {s["partition"]: s["offset"] for s in reading.reader.snapshot()}
            assert offsets[0] == expected


def test_the_mark_of_an_end_does_not_move_the_position(kafka: MockCluster) -> None:
    """The record that is written there next would be passed over."""
    place = KafkaTopicPartition(kafka.topic("abc"), 0)
    # The engine relies on marks; the user's properties do not change that.
    builder = source(kafka).set_partitions({place}).set_property("enable.partition.eof", "false")
    with Reading(builder.build()) as reading:
        fetcher, marks = reading.reader._fetching(), []
        take = fetcher.take

        def noted() -> Batch | None:
            batch = take()
            marks.append(batch is not None and batch.marks)
            return batch

        fetcher.take = noted
        assert reading.take(3) == ["a", "b", "c"]
        until(lambda: reading.poll() == [] and any(marks), "the mark")
        [split] = reading.reader.snapshot()
        assert split["offset"] == 3


def test_a_poll_has_at_most_so_many_records_and_all_of_one_partition(kafka: MockCluster) -> None:
    built = bounded(kafka, "abcde", "vwxyz")
    polls: dict[int, list[list[str]]] = {0: [], 1: []}
    with Reading(built) as reading:
        while reading.ask():
            while (records := reading.poll(2)) is not None:
                if records:
                    [_, partition] = reading.reader.split_of_last_poll()
                    polls[partition].append(records)
    assert polls == {
        0: [["a", "b"], ["c", "d"], ["e"]],
        1: [["v", "w"], ["x", "y"], ["z"]],
    }


def test_the_slot_is_woken_when_there_is_something_again(kafka: MockCluster) -> None:
    name, woken = kafka.topic("a"), threading.Event()
    with Reading(source(kafka, name).build(), wake=woken.set) as reading:
        assert reading.take(1) == ["a"]
        assert reading.poll() == []
        assert reading.reader.split_of_last_poll() is None
        write(kafka, name, "b", partition=0)
        assert woken.wait(PATIENCE)
        assert until(reading.poll, "the next") == ["b"]


# --- pauses -----------------------------------------------------------------------------------


def test_a_paused_partition_gives_nothing_and_then_goes_on_where_it_was(
    kafka: MockCluster,
) -> None:
    with Reading(bounded(kafka, "abcdef", "uvwxyz")) as reading:
        first = reading.take(2)
        paused = reading.reader.split_of_last_poll()
        other = "uvwxyz" if paused[1] == 0 else "abcdef"
        reading.reader.pause_or_resume_splits([paused], [])
        assert reading.take(6) == list(other)
        assert reading.poll() == []
        [split] = (s for s in reading.reader.snapshot() if s["partition"] == paused[1])
        assert split["offset"] == 2
        reading.reader.pause_or_resume_splits([], [paused])
        rest = reading.to_end()
    assert sorted(first + rest) == sorted({"a": "abcdef", "u": "uvwxyz"}[first[0]])
    assert first + rest == sorted(first + rest), "in order"


def test_the_client_fetches_nothing_of_a_paused_partition(kafka: MockCluster) -> None:
    name = kafka.topic("ab", "x")
    with Reading(source(kafka, name).build()) as reading:
        reading.ask()
        reading.reader.pause_or_resume_splits([(name, 0)], [])
        assert reading.take(1) == ["x"]
        write(kafka, name, "y", partition=1)
        assert reading.take(1) == ["y"]
        assert reading.reader._held == []


# --- what the group hears, and what is measured -----------------------------------------------


def committed(kafka: MockCluster, group: str, topic: str) -> int:
    consumer = Consumer({"bootstrap.servers": kafka.bootstrap_servers, "group.id": group})
    try:
        [found] = consumer.committed([TopicPartition(topic, 0)], timeout=30)
        return int(found.offset)
    finally:
        consumer.close()


def told(reading: Reading) -> dict[str, Any]:
    """The metrics of commits."""
    found = reading.metrics().items()
    return {key.rpartition(".")[2]: value for key, value in found if "commits" in key}


def test_a_complete_checkpoint_commits_its_positions_for_the_group(kafka: MockCluster) -> None:
    name = kafka.topic("abcdef")
    with Reading(source(kafka, name).set_group_id(name).build()) as reading:
        reading.take(4)
        splits = reading.reader.snapshot()
        reading.take(1)
        reading.reader.covered(splits)
        until(lambda: committed(kafka, name, name) == 4, "the commit")
        place = f"KafkaSourceReader.topic.{name}.partition.0"
        assert reading.metrics()[f"{place}.currentOffset"] == 4, "of the fifth record"
        later = reading.reader.snapshot()
        # The answer comes with a poll.
        until(lambda: reading.poll() == [] and told(reading)["commitsSucceeded"], "the answer")
        assert reading.metrics()[f"{place}.committedOffset"] == 4
        reading.reader.covered(later)
        until(lambda: committed(kafka, name, name) == 5, "the next commit")


def test_without_a_group_nothing_is_committed(kafka: MockCluster) -> None:
    name = kafka.topic("ab")
    with Reading(source(kafka, name).build()) as reading:
        reading.take(2)
        reading.reader.covered(reading.reader.snapshot())
        place = f"KafkaSourceReader.topic.{name}.partition.0"
        assert reading.metrics()[f"{place}.committedOffset"] == -1


def test_what_waits_to_be_read_is_measured(kafka: MockCluster) -> None:
    name = kafka.topic("abcdef")
    built = source(kafka).set_partitions({KafkaTopicPartition(name, 0)}).build()
    with Reading(built) as reading:
        reading.take(2)
        assert until(lambda: reading.metrics()["pendingRecords"], "the end is known") == 4
        reading.take(4)
        assert reading.metrics()["pendingRecords"] == 0


# --- bad records ------------------------------------------------------------------------------


def test_a_record_that_cannot_be_decoded_is_an_error_with_its_place(kafka: MockCluster) -> None:
    name = kafka.topic("12x4")
    builder = source(kafka, name).set_bounded("latest").set_value_only_deserializer(Number())
    with pytest.raises(RecordError) as caught, Reading(builder.build()) as reading:
        reading.to_end()
    assert caught.value.place == f"topic {name}, partition 0, offset 2"


def test_a_record_that_cannot_be_decoded_is_left_out_on_request(kafka: MockCluster) -> None:
    builder = source(kafka, kafka.topic("12x4")).set_bounded("latest").skip_bad_records()
    built = builder.set_value_only_deserializer(Number()).build()
    with Reading(built, timed=True) as reading:
        assert [value for value, _ in reading.to_end()] == [1, 2, 4]
        assert reading.metrics()["numRecordsInErrors"] == 1


def test_a_record_that_cannot_be_decoded_is_kept_on_request(kafka: MockCluster) -> None:
    builder = source(kafka, kafka.topic("12x4")).set_bounded("latest").keep_bad_records()
    with Reading(builder.set_value_only_deserializer(Number()).build()) as reading:
        first, second, bad, last = reading.to_end()
    assert (first, second, last) == (1, 2, 4)
    assert isinstance(bad, BadRecord) and bad.record.value == b"x"


def test_a_record_has_the_timestamp_of_its_message(kafka: MockCluster) -> None:
    name = kafka.topic()
    write(kafka, name, [{"value": "a", "timestamp": 77}, {"value": "b", "timestamp": 78}])
    with Reading(source(kafka, name).set_bounded("latest").build(), timed=True) as reading:
        assert sorted(reading.to_end()) == [("a", 77), ("b", 78)]
