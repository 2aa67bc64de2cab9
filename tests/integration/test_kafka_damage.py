"""A batch that is damaged in the broker's log is an error with its place, in every codec."""

from __future__ import annotations

import struct
from collections.abc import Callable

import pytest
from confluent_kafka import Producer
from kafka_parts import Reading, source

from penstock.errors import SourceError
from penstock.testing.kafka import KafkaBroker

pytestmark = pytest.mark.full("Kafka")

Topic = Callable[..., str]

CODECS = ("none", "gzip", "snappy", "lz4", "zstd")
HEADER = 61
"""Bytes of a batch before its records; the offset of the first and the length come first."""


def write_batches(broker: KafkaBroker, topic: str, codec: str, count: int) -> None:
    """So many batches of ten records."""
    settings = {"bootstrap.servers": broker.bootstrap_servers, "compression.type": codec}
    producer = Producer({**settings, "linger.ms": 50, "log_level": 0})
    for batch in range(count):
        for record in range(10):
            producer.produce(topic, f"{batch}:{record}:".ljust(60, "x"))
        assert producer.flush(60) == 0


def damage(broker: KafkaBroker, topic: str, at_least: int) -> int:
    """Alter the first batch from an offset on, in the middle of its records; returns its offset."""
    [path] = broker.segments(topic, 0)
    data = path.read_bytes()
    at = 0
    while True:
        offset, length = struct.unpack_from(">qi", data, at)
        if offset >= at_least:
            break
        at += 12 + length
    middle = at + HEADER + (12 + length - HEADER) // 2
    with path.open("r+b") as log:
        log.seek(middle)
        log.write(bytes([data[middle] ^ 0x55]))
    return offset


@pytest.mark.parametrize("codec", CODECS)
def test_a_damaged_batch_is_an_error_with_its_place(
    broker: KafkaBroker, topic: Topic, codec: str
) -> None:
    name = topic()
    write_batches(broker, name, codec, 4)
    offset = damage(broker, name, 20)
    with Reading(source(broker, name).set_bounded("latest").build()) as reading:
        place = f"topic {name}, partition 0, offset {offset}: .*damaged"
        with pytest.raises(SourceError, match=place):
            reading.to_end()
        [split] = reading.reader.snapshot()
        assert split["offset"] <= offset, "nothing of it was read"


def test_what_cannot_be_decompressed_is_an_error_without_checksums_too(
    broker: KafkaBroker, topic: Topic
) -> None:
    name = topic()
    write_batches(broker, name, "gzip", 2)
    offset = damage(broker, name, 10)
    builder = source(broker, name).set_bounded("latest").set_property("check.crcs", "false")
    place = f"partition 0, offset {offset}: .*damaged"
    with Reading(builder.build()) as reading, pytest.raises(SourceError, match=place):
        reading.to_end()
