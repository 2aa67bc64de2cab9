"""FlinkKafkaConsumer and FlinkKafkaProducer: programs that were written with them run."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Consumer, TopicPartition
from kafka_parts import Reading, read_all, values, write
from patience import until
from sink_parts import begun, open_writer, put

from penstock.common import Time, Types, WatermarkStrategy
from penstock.common.serialization import ByteArraySchema, SimpleStringSchema
from penstock.common.watermark_strategy import WatermarkGenerator, WatermarkOutput
from penstock.datastream.connectors.hybrid_source import HybridSource
from penstock.datastream.connectors.kafka import (
    FlinkKafkaConsumer,
    FlinkKafkaProducer,
    JsonSchema,
    Semantic,
)
from penstock.datastream.window import TumblingEventTimeWindows
from penstock.errors import ProgramError
from penstock.testing import local_environment
from penstock.testing.kafka import KafkaBroker

pytestmark = pytest.mark.full("Kafka")

Topic = Callable[..., str]
SERVERS = {"bootstrap.servers": "localhost:1"}


def committed(broker: KafkaBroker, topic: str, group: str) -> int:
    """What a group has committed for the first partition; negative: nothing."""
    client = Consumer({"bootstrap.servers": broker.bootstrap_servers, "group.id": group})
    try:
        return client.committed([TopicPartition(topic, 0)], timeout=30)[0].offset
    finally:
        client.close()


# --- the consumer -----------------------------------------------------------------------------


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
        until(lambda: committed(broker, name, group) == 5, "the commit")
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


def test_offsets_are_committed_only_if_that_is_wanted(broker: KafkaBroker, topic: Topic) -> None:
    name = topic()
    write(broker, name, "abc")
    groups = {wanted: f"group-{wanted}-{time.time_ns()}" for wanted in (False, True)}
    for wanted, group in groups.items():
        properties = {"bootstrap.servers": broker.bootstrap_servers, "group.id": group}
        consumer = FlinkKafkaConsumer(name, SimpleStringSchema(), properties)
        consumer.set_start_from_earliest().set_commit_offsets_on_checkpoints(wanted)
        with Reading(consumer) as reading:
            reading.take(3)
            reading.reader.covered(reading.reader.snapshot())
    # Closing waits for the commit, so that what is not there now will not come.
    assert committed(broker, name, groups[True]) == 3
    assert committed(broker, name, groups[False]) < 0


def test_its_own_property_says_how_often_partitions_are_looked_for() -> None:
    every = {"flink.partition-discovery.interval-millis": "1234"}
    consumer = FlinkKafkaConsumer("t", SimpleStringSchema(), {**SERVERS, **every})
    assert consumer._settings.discovery_ms == 1234


class AtEveryRecord(WatermarkGenerator):
    """For timestamps that ascend."""

    def on_event(self, value: Any, timestamp: int, output: WatermarkOutput) -> None:
        output.emit_watermark(timestamp - 1)

    def on_periodic_emit(self, output: WatermarkOutput) -> None:
        pass


def test_watermarks_of_the_consumer_are_those_of_each_partition(
    broker: KafkaBroker, topic: Topic
) -> None:
    name = topic(2)
    # Each partition is in order, and one is a minute ahead: to a watermark that does not tell them
    # apart, the records of the other are late.
    for partition, start in enumerate((70, 10)):
        times = [start + second for second in range(60)] + [1_000]
        write(broker, name, [json.dumps({"s": s}) for s in times], partition=partition)
    properties = {"bootstrap.servers": broker.bootstrap_servers}
    consumer = FlinkKafkaConsumer([name], JsonSchema(), properties).set_start_from_earliest()
    strategy = WatermarkStrategy.for_generator(AtEveryRecord)
    strategy = strategy.with_timestamp_assigner(lambda value, _: value["s"] * 1_000)
    assert consumer.assign_timestamps_and_watermarks(strategy) is consumer
    with local_environment(seed=3) as env:
        stream = env.add_source(consumer).set_parallelism(1)
        pairs = stream.map(lambda value: (value["s"] // 10, 1))
        windows = pairs.key_by(lambda pair: pair[0]).window(
            TumblingEventTimeWindows.of(Time.seconds(10))
        )
        counts = windows.reduce(lambda a, b: (a[0], a[1] + b[1])).execute_and_collect(limit=12)
    assert sorted(counts) == [(ten, 10) for ten in range(1, 13)]


@pytest.mark.parametrize(
    ("schema", "type_info", "expected"),
    [
        (SimpleStringSchema(), Types.STRING(), "7"),
        (ByteArraySchema(), Types.PRIMITIVE_ARRAY(Types.BYTE()), b"7"),
        (JsonSchema(), Types.PICKLED_BYTE_ARRAY(), 7),
    ],
)
def test_a_stream_has_the_type_of_the_schema(
    broker: KafkaBroker, topic: Topic, schema: object, type_info: object, expected: object
) -> None:
    name = topic()
    write(broker, name, ["7"])
    properties = {"bootstrap.servers": broker.bootstrap_servers}
    consumer = FlinkKafkaConsumer(name, schema, properties).set_start_from_earliest()
    with local_environment(seed=4) as env:
        stream = env.add_source(consumer, "numbers")
        assert (stream.get_name(), stream.get_type()) == ("Source: numbers", type_info)
        assert stream.execute_and_collect(limit=1) == [expected]


def test_watermarks_that_two_places_give_are_refused() -> None:
    strategy = WatermarkStrategy.for_monotonous_timestamps()
    consumer = FlinkKafkaConsumer("t", SimpleStringSchema(), SERVERS)
    with pytest.raises(ProgramError, match="needs a WatermarkStrategy"):
        consumer.assign_timestamps_and_watermarks(lambda value: 1)
    consumer.assign_timestamps_and_watermarks(strategy)
    with local_environment() as env, pytest.raises(ProgramError, match=r"use add_source\(\)"):
        env.from_source(consumer, WatermarkStrategy.no_watermarks(), "t")
    with pytest.raises(ProgramError, match="one watermark strategy"):
        HybridSource.builder(consumer).build()


# --- the producer -----------------------------------------------------------------------------


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
    end, writer = begun(exactly)
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


# --- a whole program --------------------------------------------------------------------------

PROGRAM = """
import json
import sys

from pyflink.common import Duration, Time, Types, WatermarkStrategy
from pyflink.common.serialization import SimpleStringSchema
from pyflink.common.watermark_strategy import TimestampAssigner
from pyflink.datastream import StreamExecutionEnvironment
from pyflink.datastream.connectors.kafka import FlinkKafkaConsumer, FlinkKafkaProducer, Semantic
from pyflink.datastream.window import TumblingEventTimeWindows


class At(TimestampAssigner):
    def extract_timestamp(self, value, record_timestamp):
        return json.loads(value)["ts"]


def main(servers, topic, group, out, checkpoints):
    env = StreamExecutionEnvironment.get_execution_environment()
    env.set_parallelism(2)
    env.enable_checkpointing(300)
    env.get_checkpoint_config().set_checkpoint_storage_dir(checkpoints)
    consumer = FlinkKafkaConsumer(
        topics=topic,
        deserialization_schema=SimpleStringSchema(),
        properties={"bootstrap.servers": servers, "group.id": group},
    )
    consumer.set_start_from_earliest()
    consumer.set_commit_offsets_on_checkpoints(True)
    producer = FlinkKafkaProducer(
        topic=out,
        serialization_schema=SimpleStringSchema(),
        producer_config={"bootstrap.servers": servers, "transaction.timeout.ms": "60000"},
        semantic=Semantic.EXACTLY_ONCE,
    )
    strategy = WatermarkStrategy.for_bounded_out_of_orderness(Duration.of_seconds(1))
    strategy = strategy.with_timestamp_assigner(At()).with_idleness(Duration.of_seconds(1))
    stream = env.add_source(consumer, "payments", Types.STRING())
    stream = stream.assign_timestamps_and_watermarks(strategy)
    pairs = stream.map(
        lambda line: (json.loads(line)["merchant"], 1), Types.TUPLE([Types.STRING(), Types.LONG()])
    )
    minutes = TumblingEventTimeWindows.of(Time.minutes(1))
    windows = pairs.key_by(lambda pair: pair[0]).window(minutes)
    counts = windows.reduce(lambda a, b: (a[0], a[1] + b[1]))
    counts.map(lambda pair: f"{pair[0]} {pair[1]}", Types.STRING()).add_sink(producer)
    env.execute("payments")


main(*sys.argv[1:])
"""


def test_a_program_of_pyflink_runs_as_it_is(
    broker: KafkaBroker, topic: Topic, tmp_path: Path
) -> None:
    name, out, group = topic(), topic(), f"group-{time.time_ns()}"
    payments = [{"merchant": "ab"[n % 2], "ts": n * 1_000} for n in range(121)]
    write(broker, name, map(json.dumps, payments))
    job = tmp_path / "job.py"
    job.write_text(PROGRAM)
    command = [sys.executable, "-m", "penstock", "run", "--pyflink", str(job)]
    command += [broker.bootstrap_servers, name, group, out, (tmp_path / "checkpoints").as_uri()]
    with (tmp_path / "log").open("w") as log:
        process = subprocess.Popen(command, stdout=log, stderr=log)

    def done() -> bool:
        assert process.poll() is None, (tmp_path / "log").read_text()
        return len(read_all(broker, out)) >= 4

    try:
        write(broker, name, [json.dumps({"merchant": "c", "ts": 125_000})])
        until(done, "two minutes of two merchants")
        until(lambda: committed(broker, name, group) == 122, "the commit")
        process.send_signal(signal.SIGINT)
        process.wait(60)
    finally:
        process.kill()
        process.wait()
    assert sorted(values(read_all(broker, out))) == ["a 30", "a 30", "b 30", "b 30"]
