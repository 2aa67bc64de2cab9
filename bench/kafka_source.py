"""The Kafka source alone, against the client's own loop: both count the records of one topic.

The client's loop makes a str of each value as the source does. It runs with the source's settings,
and with the library's own: a setting that slows both sides down does not show in the first ratio.
"""

import tempfile
import time
from typing import Any

from confluent_kafka import Consumer, Producer, TopicPartition

from bench.common import Run, interleaved, result_row, share_with_workers
from bench.jobs import CountingSink, environment
from bench.stamps import mark, notes
from penstock.common import WatermarkStrategy
from penstock.connectors.kafka.source import CONSUMER_DEFAULTS, CONSUMER_RULES
from penstock.datastream.connectors.kafka import KafkaSource
from penstock.datastream.functions import MapFunction, RuntimeContext
from penstock.testing.kafka import KafkaBroker, kafka_broker

RECORDS, RECORD_BYTES, PARTITIONS = 1_000_000, 100, 3
TOPIC = "records"


class Same(MapFunction):
    """Notes when it was opened, which is just before the first record is read."""

    def __init__(self, folder: str) -> None:
        self._folder = folder

    def open(self, runtime_context: RuntimeContext) -> None:
        mark(self._folder, "opened")

    def map(self, value: Any) -> Any:
        return value


def fill(broker: KafkaBroker) -> None:
    broker.create_topic(TOPIC, PARTITIONS)
    producer = Producer({"bootstrap.servers": broker.bootstrap_servers, "linger.ms": 50})
    for number in range(RECORDS):
        while True:
            try:
                producer.produce(TOPIC, b"x" * RECORD_BYTES, partition=number % PARTITIONS)
                break
            except BufferError:
                producer.poll(0.1)
    producer.flush()


def penstock(broker: KafkaBroker) -> Run:
    with tempfile.TemporaryDirectory() as folder:
        env = environment(folder).set_parallelism(1)
        builder = KafkaSource.builder().set_bootstrap_servers(broker.bootstrap_servers)
        source = builder.set_topics(TOPIC).set_bounded("latest").build()
        stream = env.from_source(source, WatermarkStrategy.no_watermarks(), "records")
        stream.map(Same(folder)).sink_to(CountingSink(folder))
        called = time.time_ns()
        env.execute("kafka source")
        wall = (time.time_ns() - called) / 1e9
        opened = min(time for [time] in notes(folder, "opened"))
        [[records, ended]] = notes(folder, "written")
    return Run(records=records, seconds=(ended - opened) / 1e9, wall=wall)


def client(broker: KafkaBroker, defaults: dict[str, str]) -> Run:
    settings = {**defaults, **CONSUMER_RULES, "group.id": "bench"}
    consumer = Consumer({**settings, "bootstrap.servers": broker.bootstrap_servers})
    started = time.time_ns()
    consumer.assign([TopicPartition(TOPIC, number, 0) for number in range(PARTITIONS)])
    records = 0
    while records < RECORDS:
        for message in consumer.consume(2000, 0.1):
            if message.error() is None:
                message.value().decode()
                records += 1
    seconds = (time.time_ns() - started) / 1e9
    consumer.close()
    return Run(records=records, seconds=seconds, wall=seconds)


def main() -> None:
    share_with_workers()
    with kafka_broker() as broker:
        fill(broker)
        penstock(broker)  # makes the session
        rounds = interleaved(
            penstock=lambda: penstock(broker),
            client=lambda: client(broker, CONSUMER_DEFAULTS),
            client_as_it_comes=lambda: client(broker, {}),
        )
    low, high = rounds.spread("penstock", "client")
    details = (
        f"{rounds.rate('penstock'):,.0f}/s of {rounds.rate('client'):,.0f}/s, "
        f"rounds {low:.2f}-{high:.2f}; "
        f"{rounds.ratio('penstock', 'client_as_it_comes'):.2f} x it with its own settings"
    )
    print(rounds.table())
    ratio = rounds.ratio("penstock", "client")
    print(result_row("kafka_source", f"{ratio:.2f} x the client's own loop", details))


if __name__ == "__main__":
    main()
