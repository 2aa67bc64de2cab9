"""What is built on the Kafka source and sink: bad records, sources in turn, the older names."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from confluent_kafka import Consumer, TopicPartition
from kafka_parts import Reading, read_all, source, until, values, write
from test_kafka_sink import committer, open_writer
from test_kafka_sink import write as put

from penstock.common import Duration, Types, WatermarkStrategy
from penstock.common.serialization import SimpleStringSchema
from penstock.connectors.bad_records import BadRecord
from penstock.datastream import OutputTag
from penstock.datastream.connectors.base import DivertBadRecords
from penstock.datastream.connectors.file_system import FileSource, StreamFormat
from penstock.datastream.connectors.hybrid_source import HybridSource
from penstock.datastream.connectors.kafka import (
    ConsumerRecord,
    FlinkKafkaConsumer,
    FlinkKafkaProducer,
    JsonSchema,
    Semantic,
)
from penstock.errors import ProgramError
from penstock.testing import local_environment
from penstock.testing.conformance import check_bounded_source
from penstock.testing.kafka import KafkaBroker

Topic = Callable[..., str]
NONE = WatermarkStrategy.no_watermarks()

# --- bad records ------------------------------------------------------------------------------


def test_a_poison_message_is_kept_whole_in_its_place(broker: KafkaBroker, topic: Topic) -> None:
    name = topic()
    poison = {"value": "{nonsense", "key": "k", "headers": [("h", b"1")], "timestamp": 77}
    write(broker, name, ['{"a": 1}', poison, '{"a": 2}'])
    builder = source(broker, name).set_bounded("latest").keep_bad_records()
    with Reading(builder.set_value_only_deserializer(JsonSchema()).build()) as reading:
        first, bad, last = reading.to_end()
        assert reading.metrics()["numRecordsInErrors"] == 1
    assert (first, last) == ({"a": 1}, {"a": 2})
    assert isinstance(bad, BadRecord) and bad.error.startswith("JSONDecodeError: ")
    assert bad.record == ConsumerRecord(name, 0, 1, 77, b"k", b"{nonsense", (("h", b"1"),))


def test_poison_messages_go_to_a_side_output(broker: KafkaBroker, topic: Topic) -> None:
    name = topic()
    write(broker, name, ["{}", *(json.dumps({"ts": n * 1_000}) for n in range(5)), "x"])
    write(broker, name, [b"\xff"])
    strategy = WatermarkStrategy.for_bounded_out_of_orderness(Duration.of_seconds(1))
    strategy = strategy.with_timestamp_assigner(lambda value, _: value.get("ts", 0))
    bad = OutputTag("bad")
    builder = source(broker, name).set_bounded("latest").keep_bad_records()
    builder.set_value_only_deserializer(JsonSchema())
    with local_environment(seed=1) as env:
        stream = env.from_source(builder.build(), strategy, "payments").set_parallelism(1)
        good = stream.process(DivertBadRecords(bad))
        refused = good.get_side_output(bad).map(lambda one: ("bad", one.record.offset))
        found = list(
            good.map(lambda one: ("good", one.get("ts"))).union(refused).execute_and_collect()
        )
    expected = [("good", None), *(("good", n * 1_000) for n in range(5)), ("bad", 6), ("bad", 7)]
    assert sorted(found, key=repr) == sorted(expected, key=repr)


# --- files, then Kafka ------------------------------------------------------------------------


def test_files_and_then_a_topic(broker: KafkaBroker, topic: Topic, tmp_path: Path) -> None:
    name = topic(2)
    (tmp_path / "old.txt").write_text("".join(f"old {n}\n" for n in range(50)))
    for number in range(2):
        write(broker, name, [f"new {number}:{n}" for n in range(50)], partition=number)
    files = FileSource.for_record_stream_format(
        StreamFormat.text_line_format(), str(tmp_path)
    ).build()
    live = source(broker, name).set_bounded("latest").build()
    hybrid = HybridSource.builder(files).add_source(live).build()
    records = check_bounded_source(hybrid, ordered=False)
    assert records[:50] == [f"old {n}" for n in range(50)] and len(records) == 150
    with local_environment(seed=2) as env:
        stream = env.from_source(hybrid, NONE, "payments").set_parallelism(2)
        assert sorted(stream.execute_and_collect()) == sorted(records)


# --- older names ------------------------------------------------------------------------------


def test_a_consumer_by_its_older_name(broker: KafkaBroker, topic: Topic) -> None:
    name, group = topic(), f"group-{time.time_ns()}"
    write(broker, name, [{"value": str(n), "timestamp": 1_000 + n} for n in range(5)])
    properties = {"bootstrap.servers": broker.bootstrap_servers, "group.id": group}

    def consumer() -> FlinkKafkaConsumer:
        return FlinkKafkaConsumer(name, SimpleStringSchema(), properties)

    assert consumer().get_produced_type() == Types.STRING()
    with Reading(consumer().set_start_from_earliest()) as reading:
        assert reading.take(5) == list("01234")
    with Reading(consumer().set_start_from_timestamp(1_003)) as reading:
        assert reading.take(2) == ["3", "4"]
        reading.reader.covered(reading.reader.snapshot())
        client = Consumer(properties)
        asked = [TopicPartition(name, 0)]
        until("the commit", lambda: client.committed(asked)[0].offset == 5)
        client.close()
    write(broker, name, ["5"])
    with Reading(consumer().set_start_from_latest()) as reading:
        reading.ask()
        assert reading.reader.snapshot()[0]["offset"] == 6
    # Where the group is, as in Flink.
    with Reading(consumer()) as reading:
        assert reading.take(1) == ["5"]


def test_a_group_without_offsets_starts_where_the_client_is_told(
    broker: KafkaBroker, topic: Topic
) -> None:
    name = topic()
    write(broker, name, "ab")
    servers = {"bootstrap.servers": broker.bootstrap_servers}
    for more, offset in (
        ({}, 2),
        ({"auto.offset.reset": "earliest"}, 0),
        ({"auto.offset.reset": "earliest", "group.id": f"group-{time.time_ns()}"}, 0),
    ):
        consumer = FlinkKafkaConsumer([name], SimpleStringSchema(), {**servers, **more})
        with Reading(consumer) as reading:
            reading.ask()
            assert reading.reader.snapshot()[0]["offset"] == offset, more


def test_a_producer_by_its_older_name(broker: KafkaBroker, topic: Topic) -> None:
    name = topic()
    servers = {"bootstrap.servers": broker.bootstrap_servers}
    plain = FlinkKafkaProducer(name, SimpleStringSchema(), servers)
    writer = open_writer(plain)
    put(writer, "a")
    writer.prepare_commit()()
    writer.close()
    plain.set_write_timestamp_to_kafka(True)
    writer = open_writer(plain)
    writer.write_timed("b", 1_234)
    writer.prepare_commit()()
    writer.close()
    first, second = read_all(broker, name)
    assert abs(first.timestamp()[1] / 1000 - time.time()) < 3_600 and second.timestamp()[1] == 1_234
    exactly = FlinkKafkaProducer(
        name, SimpleStringSchema(), servers, semantic=Semantic.EXACTLY_ONCE
    )
    end = committer(exactly)
    end.abort_others([])
    writer = open_writer(exactly)
    put(writer, "c")
    prepared = writer.prepare_commit()()
    assert values(read_all(broker, name)) == ["a", "b"]
    end.commit(prepared)
    assert values(read_all(broker, name)) == ["a", "b", "c"]
    assert prepared[0]["id"].startswith(name)
    writer.close()
    end.close()


def test_what_would_lose_records_silently_is_refused() -> None:
    servers = {"bootstrap.servers": "localhost:1"}
    producer = FlinkKafkaProducer(
        "t", SimpleStringSchema(), servers, semantic=Semantic.EXACTLY_ONCE
    )
    with pytest.raises(ProgramError, match="silently"):
        producer.set_log_failures_only(True)
    with pytest.raises(ProgramError, match=r"transaction\.timeout\.ms"):
        producer.ignore_failures_after_transaction_timeout()
    with pytest.raises(ProgramError, match="EXACTLY_ONCE"):
        producer.set_flush_on_checkpoint(False)
