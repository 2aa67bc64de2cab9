"""What tests with Kafka are made of. Slots import it by name."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from typing import Any, Protocol

from confluent_kafka import Consumer, Producer, TopicPartition
from patience import until

from penstock.common.clock import SystemClock
from penstock.connectors.source import (
    EnumeratorContext,
    ReaderContext,
    SourceReader,
    splits_for,
)
from penstock.datastream.connectors.base import DeliveryGuarantee
from penstock.datastream.connectors.kafka import (
    KafkaRecordSerializationSchema,
    KafkaSink,
    KafkaSource,
    KafkaSourceBuilder,
)


class Cluster(Protocol):
    """A broker, or what speaks like one."""

    bootstrap_servers: str


def write(broker: Cluster, topic: str, messages: Iterable[Any], **fixed: Any) -> None:
    """Write values, or dicts of what `produce` takes, to a topic."""
    # Without it the client may write the first messages of a new topic behind later ones.
    settings = {"bootstrap.servers": broker.bootstrap_servers, "enable.idempotence": True}
    producer = Producer({**settings, "log_level": 0})
    for message in messages:
        one = message if isinstance(message, dict) else {"value": message}
        producer.produce(topic, **{**fixed, **one})
        producer.poll(0)
    assert producer.flush(30) == 0


def read_all(broker: Cluster, topic: str, isolation: str = "read_committed") -> list[Any]:
    """All messages of a topic, partition after partition, up to its end as it is now."""
    consumer = Consumer(
        {
            "bootstrap.servers": broker.bootstrap_servers,
            "group.id": "test",
            "isolation.level": isolation,
            "enable.auto.commit": "false",
            "enable.partition.eof": "true",
            "auto.offset.reset": "earliest",
            "log_level": 0,
        }
    )
    try:
        partitions = consumer.list_topics(topic, timeout=30).topics[topic].partitions
        consumer.assign([TopicPartition(topic, number, 0) for number in partitions])
        found: list[Any] = []
        open_partitions = set(partitions)
        deadline = time.monotonic() + 30
        while open_partitions:
            assert time.monotonic() < deadline, f"{topic} cannot be read to its end"
            for message in consumer.consume(10_000, 0.05):
                if message.error() is not None:
                    open_partitions.discard(message.partition())
                else:
                    found.append(message)
        return sorted(found, key=lambda message: (message.partition(), message.offset()))
    finally:
        consumer.close()


def values(messages: list[Any]) -> list[str]:
    return [message.value().decode() for message in messages]


def source(broker: Cluster, *topics: str) -> KafkaSourceBuilder:
    builder = KafkaSource.builder().set_bootstrap_servers(broker.bootstrap_servers)
    return builder.set_topics(*topics) if topics else builder


class Reading:
    """A reader and its enumerator, driven by hand."""

    def __init__(
        self,
        source: KafkaSource,
        enumerator: Any = None,
        splits: Any = (),
        timed: bool = False,
        wake: Callable[[], None] = lambda: None,
    ) -> None:
        self.enumerator = source.create_enumerator(EnumeratorContext(1), enumerator)
        context = ReaderContext(0, 1, SystemClock(), wake, timed)
        self._metrics = context.metrics
        self.reader: SourceReader = source.create_reader(context)
        self.reader.open()
        if splits:
            self.reader.add_splits(list(splits))

    def __enter__(self) -> Reading:
        return self

    def __exit__(self, *_: Any) -> None:
        self.reader.close()
        self.enumerator.close()

    def metrics(self) -> dict[str, Any]:
        return dict(self._metrics.read(0))

    def ask(self) -> bool:
        """Ask for splits; False when there will be no more."""
        splits = splits_for(self.enumerator, 0)
        if splits:
            self.reader.add_splits(splits)
        return splits is not None

    def poll(self, limit: int = 1000) -> list[Any] | None:
        return self.reader.poll(limit)

    def to_end(self, limit: int = 1000) -> list[Any]:
        """All records of a bounded source."""
        found: list[Any] = []
        deadline = time.monotonic() + 60
        while time.monotonic() < deadline:
            records = self.poll(limit)
            if records is None:
                if not self.ask():
                    return found
            else:
                found.extend(records)
                if not records:
                    time.sleep(0.002)
        raise AssertionError(f"the source has no end; so far: {found[:10]}")

    def take(self, count: int) -> list[Any]:
        """The next `count` records of a source without an end."""
        found: list[Any] = []
        self.ask()

        def enough() -> bool:
            found.extend(self.poll(count - len(found)) or ())
            return len(found) >= count

        until(enough, f"{count} records")
        return found


def read(builder: KafkaSourceBuilder) -> list[Any]:
    """All records of a bounded source."""
    with Reading(builder.build()) as reading:
        return reading.to_end()


def sink(
    broker: Cluster,
    serializer: Any,
    guarantee: DeliveryGuarantee = DeliveryGuarantee.AT_LEAST_ONCE,
    prefix: str | None = None,
    **properties: Any,
) -> KafkaSink:
    if isinstance(serializer, str):
        serializer = KafkaRecordSerializationSchema.builder().set_topic(serializer).build()
    builder = KafkaSink.builder().set_bootstrap_servers(broker.bootstrap_servers)
    builder.set_delivery_guarantee(guarantee).set_record_serializer(serializer)
    if prefix is not None:
        builder.set_transactional_id_prefix(prefix)
    for key, value in properties.items():
        builder.set_property(key.replace("_", "."), value)
    return builder.build()


def exactly_once(broker: Cluster, topic: Any, prefix: str, **properties: Any) -> KafkaSink:
    return sink(broker, topic, DeliveryGuarantee.EXACTLY_ONCE, prefix, **properties)
