"""The timestamps of written messages are those of records, from the first millisecond on."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from confluent_kafka import Producer
from kafka_parts import read_all, sink

from penstock.common import WatermarkStrategy
from penstock.datastream.connectors.kafka import KafkaRecordSerializationSchema
from penstock.testing import local_environment
from penstock.testing.kafka import KafkaBroker

pytestmark = pytest.mark.full("Kafka")


def test_event_time_0_is_not_written_as_the_present(
    broker: KafkaBroker, topic: Callable[..., str]
) -> None:
    """0 itself cannot be written: the client library takes it for "now"."""
    name = topic()
    schema = KafkaRecordSerializationSchema.builder().set_topic(name).build()
    strategy = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(
        lambda value, _: int(value)
    )
    with local_environment(seed=1) as env:
        env.set_parallelism(1)
        stream = env.from_collection(["0", "1", "2"]).assign_timestamps_and_watermarks(strategy)
        stream.sink_to(sink(broker, schema))
        env.execute("times")
    found = {message.value(): message.timestamp()[1] for message in read_all(broker, name)}
    assert found == {b"0": 1, b"1": 1, b"2": 2}


def test_no_call_of_the_client_writes_timestamp_0(
    broker: KafkaBroker, topic: Callable[..., str]
) -> None:
    """If this fails, a client can: then event time 0 need not be written as 1."""
    name = topic()
    producer = Producer({"bootstrap.servers": broker.bootstrap_servers})
    producer.produce(name, value="one", timestamp=0)
    with pytest.raises(NotImplementedError, match="timestamps"):
        producer.produce_batch(name, [{"value": "batch", "timestamp": 0}])
    assert producer.flush(30) == 0
    [message] = read_all(broker, name)
    assert message.timestamp()[1] != 0
