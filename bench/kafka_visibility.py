"""How soon a record of an exactly-once Kafka sink is seen, for several checkpoint intervals.

From the moment the writer gets a record to the moment a consumer that reads committed records has
it. Every engine waits for the checkpoint after the record, so half an interval is the least that
the middle record can take, and a whole one the most that is not the engine's doing.
"""

import tempfile
import threading
import time
import uuid
from typing import Any

from confluent_kafka import Consumer, TopicPartition

from bench.common import percentile, result_row, share_with_workers
from penstock.common import Configuration, WatermarkStrategy
from penstock.datastream import StreamExecutionEnvironment
from penstock.datastream.connectors.base import DeliveryGuarantee
from penstock.datastream.connectors.data_generator import DataGeneratorSource
from penstock.datastream.connectors.kafka import (
    KafkaRecordSerializationSchema,
    KafkaSink,
)
from penstock.testing.kafka import KafkaBroker, kafka_broker

INTERVALS = {0.3: 15, 1.0: 20, 5.0: 40}
"""Seconds between checkpoints, and how many seconds are measured."""
WARMUP, RATE = 3, 1_000


def stamped(number: int) -> str:
    """Called right before the writer is, in the same chain."""
    return str(time.time_ns())


class Watching(threading.Thread):
    """A consumer that reads committed records, and notes how old each is when it comes."""

    def __init__(self, broker: KafkaBroker, topic: str) -> None:
        super().__init__(daemon=True)
        settings = {
            "bootstrap.servers": broker.bootstrap_servers,
            "group.id": uuid.uuid4().hex,
            "isolation.level": "read_committed",
            "enable.auto.commit": "false",
            "fetch.wait.max.ms": "20",
        }
        self._consumer = Consumer(settings)
        self._consumer.assign([TopicPartition(topic, 0, 0)])
        self.ended = threading.Event()
        self.seen: list[tuple[int, float]] = []
        """When the writer got a record, and how many seconds later it was seen."""

    def run(self) -> None:
        while not self.ended.is_set():
            first = self._consumer.poll(0.1)
            messages = [] if first is None else [first, *self._consumer.consume(10_000, 0)]
            now = time.time_ns()
            for message in messages:
                if message.error() is None:
                    written = int(message.value())
                    self.seen.append((written, (now - written) / 1e9))
        self._consumer.close()


def measured(broker: KafkaBroker, interval: float, seconds: float) -> list[float]:
    """Seconds until records were seen, in order of size."""
    topic = f"seen-{uuid.uuid4().hex[:8]}"
    broker.create_topic(topic, 1)
    watching = Watching(broker, topic)
    watching.start()
    with tempfile.TemporaryDirectory() as folder:
        settings = {
            "parallelism.default": 2,
            "execution.checkpointing.interval": f"{round(interval * 1000)} ms",
            "execution.checkpointing.dir": f"file://{folder}",
        }
        configuration = Configuration.from_dict(settings)
        env = StreamExecutionEnvironment.get_execution_environment(configuration)
        # The last records are committed when the job ends: they do not count.
        count = round((WARMUP + seconds + interval) * RATE)
        source = DataGeneratorSource(int, count, RATE)
        stream = env.from_source(source, WatermarkStrategy.no_watermarks(), "numbers")
        stream.map(stamped).sink_to(_sink(broker, topic))
        env.execute("visibility")
    _wait_for(watching, count)
    start = min(written for written, _ in watching.seen) + int(WARMUP * 1e9)
    end = start + int(seconds * 1e9)
    return sorted(age for written, age in watching.seen if start <= written < end)


def _wait_for(watching: Watching, count: int) -> None:
    deadline = time.monotonic() + 30
    while len(watching.seen) < count and time.monotonic() < deadline:
        time.sleep(0.05)
    watching.ended.set()
    watching.join()
    if len(watching.seen) != count:
        raise SystemExit(f"{len(watching.seen)} records were seen, and not {count}")


def _sink(broker: KafkaBroker, topic: str) -> KafkaSink:
    schema = KafkaRecordSerializationSchema.builder().set_topic(topic).build()
    builder = KafkaSink.builder().set_bootstrap_servers(broker.bootstrap_servers)
    builder.set_record_serializer(schema).set_transactional_id_prefix(topic)
    return builder.set_delivery_guarantee(DeliveryGuarantee.EXACTLY_ONCE).build()


def main() -> None:
    share_with_workers()
    figures: list[Any] = []
    with kafka_broker() as broker:
        measured(broker, 0.3, 1)  # makes the session
        for interval, seconds in INTERVALS.items():
            ages = measured(broker, interval, seconds)
            p50, p99 = percentile(ages, 50), percentile(ages, 99)
            figures.append(
                f"{interval:g} s: p50 {p50 / interval:.2f} x, p99 {p99 / interval:.2f} x"
            )
            print(
                f"interval {interval:g} s: p50 {p50:.3f} s, p99 {p99:.3f} s, max {ages[-1]:.3f} s"
            )
    details = f"{RATE:,} records/s, parallelism 2, committed records only"
    print(result_row("kafka_visibility", "; ".join(figures), details))


if __name__ == "__main__":
    main()
