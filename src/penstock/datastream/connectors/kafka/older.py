"""FlinkKafkaConsumer and FlinkKafkaProducer of older programs, as a KafkaSource and a KafkaSink.

What they could do the newer ones do; what they did worse is said where it was asked for.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import replace
from enum import Enum
from typing import Any

from penstock.common.serialization import (
    ByteArraySchema,
    DeserializationSchema,
    SerializationSchema,
    SimpleStringSchema,
)
from penstock.common.typeinfo import TypeInformation, Types
from penstock.common.watermark_strategy import WatermarkStrategy
from penstock.connectors.delivery import DeliveryGuarantee
from penstock.connectors.kafka.offsets import EARLIEST, LATEST, RESETS, OffsetRule
from penstock.connectors.kafka.sink import TopicSink
from penstock.datastream.checks import need
from penstock.datastream.connectors.kafka.sink import KafkaRecordSerializationSchema, KafkaSink
from penstock.datastream.connectors.kafka.source import KafkaSource
from penstock.errors import ProgramError

# Properties of the consumer that the source has by another name.
_NEWER = {"flink.partition-discovery.interval-millis": "partition.discovery.interval.ms"}


class FlinkKafkaConsumer(KafkaSource):
    """A Kafka source by its older name, for `add_source()` or `from_source()`.

    It starts where the group has committed, and elsewhere where the property `auto.offset.reset`
    says: at the latest record, unless it is set. It has no end.
    """

    def __init__(
        self,
        topics: str | list[str],
        deserialization_schema: DeserializationSchema,
        properties: Mapping[str, str],
    ) -> None:
        builder = KafkaSource.builder()
        for key, value in properties.items():
            builder.set_property(_NEWER.get(key, key), value)
        builder.set_topics(*([topics] if isinstance(topics, str) else topics))
        builder.set_value_only_deserializer(deserialization_schema)
        super().__init__(builder.build()._settings)
        self.produced_type: TypeInformation = _type_of(deserialization_schema)
        self.set_start_from_group_offsets()

    def assign_timestamps_and_watermarks(
        self, watermark_strategy: WatermarkStrategy
    ) -> FlinkKafkaConsumer:
        """Timestamps and watermarks by this strategy, for each partition by itself.

        `stream.assign_timestamps_and_watermarks` tells partitions apart only where it is in one
        chain with the source.
        """
        need(watermark_strategy, WatermarkStrategy, "assign_timestamps_and_watermarks()")
        self.watermark_strategy = watermark_strategy
        return self

    def set_commit_offsets_on_checkpoints(self, commit_on_checkpoints: bool) -> FlinkKafkaConsumer:
        """Whether the group's offsets are committed when a checkpoint is complete."""
        self._settings = replace(self._settings, commit_offsets=commit_on_checkpoints)
        return self

    def set_start_from_earliest(self) -> FlinkKafkaConsumer:
        """Start at the oldest record there is."""
        return self._start(OffsetRule(EARLIEST))

    def set_start_from_latest(self) -> FlinkKafkaConsumer:
        """Start behind the newest record there is."""
        return self._start(OffsetRule(LATEST))

    def set_start_from_timestamp(self, startup_offsets_timestamp: int) -> FlinkKafkaConsumer:
        """Start at the first record that is not older than this, in milliseconds since 1970."""
        return self._start(OffsetRule("timestamp", timestamp_ms=startup_offsets_timestamp))

    def set_start_from_group_offsets(self) -> FlinkKafkaConsumer:
        """Start where the group has committed: see the class."""
        reset = self._settings.properties.get("auto.offset.reset", LATEST)
        if reset not in RESETS:
            raise ProgramError(f"auto.offset.reset is {reset!r}, not one of {', '.join(RESETS)}")
        if self._settings.group is None:
            return self._start(OffsetRule(reset))
        return self._start(OffsetRule("committed", reset=reset))

    def disable_filter_restored_partitions_with_subscribed_topics(self) -> FlinkKafkaConsumer:
        """Partitions of a checkpoint are read on although their topic is not named any more.

        That is what a Kafka source does in any case.
        """
        return self

    def get_produced_type(self) -> TypeInformation:
        """The type of the records."""
        return self.produced_type

    def _start(self, rule: OffsetRule) -> FlinkKafkaConsumer:
        self._settings = replace(self._settings, start=rule)
        return self


class Semantic(Enum):
    """What a FlinkKafkaProducer promises when something fails."""

    EXACTLY_ONCE = DeliveryGuarantee.EXACTLY_ONCE
    AT_LEAST_ONCE = DeliveryGuarantee.AT_LEAST_ONCE
    NONE = DeliveryGuarantee.NONE


class FlinkKafkaProducer(KafkaSink):
    """A Kafka sink by its older name, for `add_sink()` or `sink_to()`.

    Exactly once needs transactional ids: they begin with `transactional.id` of `producer_config`,
    or with the topic. One live sink at a time may use them. `kafka_producer_pool_size` is not
    needed: there are as many producers as checkpoints are under way.
    """

    def __init__(
        self,
        topic: str,
        serialization_schema: SerializationSchema,
        producer_config: Mapping[str, str],
        kafka_producer_pool_size: int = 5,
        semantic: Semantic = Semantic.AT_LEAST_ONCE,
    ) -> None:
        if not isinstance(semantic, Semantic):
            raise ProgramError("semantic is a Semantic: EXACTLY_ONCE, AT_LEAST_ONCE or NONE")
        records = KafkaRecordSerializationSchema.builder().set_topic(topic)
        records.set_value_serialization_schema(serialization_schema).set_timestamp(_now)
        builder = KafkaSink.builder().set_record_serializer(records.build())
        builder.set_delivery_guarantee(semantic.value)
        for key, value in producer_config.items():
            if key != "transactional.id":
                builder.set_property(key, value)
        builder.set_transactional_id_prefix(producer_config.get("transactional.id", topic))
        super().__init__(builder.build()._settings)

    def set_log_failures_only(self, log_failures_only: bool) -> None:
        """False, as it is: records that cannot be written fail the job."""
        if log_failures_only:
            raise ProgramError(
                "set_log_failures_only(True) would lose records silently: remove the call; records "
                "that cannot be written fail the job"
            )

    def set_flush_on_checkpoint(self, flush_on_checkpoint: bool) -> None:
        """Whether a checkpoint waits until all is written: at least once, or no promise."""
        exactly, at_least, none = Semantic.EXACTLY_ONCE, Semantic.AT_LEAST_ONCE, Semantic.NONE
        if self._settings.guarantee is not exactly.value:
            chosen = at_least if flush_on_checkpoint else none
            self._use(guarantee=chosen.value)
        elif not flush_on_checkpoint:
            raise ProgramError("with Semantic.EXACTLY_ONCE a checkpoint waits until all is written")

    def set_write_timestamp_to_kafka(self, write_timestamp_to_kafka: bool) -> None:
        """Whether a message has its record's timestamp; otherwise the time of writing."""
        timestamp = None if write_timestamp_to_kafka else _now
        self._use(messages=replace(self._settings.messages, timestamp=timestamp))

    def ignore_failures_after_transaction_timeout(self) -> FlinkKafkaProducer:
        """Refused: records that a checkpoint covers would be lost silently."""
        raise ProgramError(
            "ignore_failures_after_transaction_timeout() would lose records silently: remove the "
            "call, and set transaction.timeout.ms to more than the job may be away"
        )

    def _use(self, **changes: Any) -> None:
        TopicSink.__init__(self, replace(self._settings, **changes))


def _type_of(schema: DeserializationSchema) -> TypeInformation:
    if isinstance(schema, SimpleStringSchema):
        return Types.STRING()
    if isinstance(schema, ByteArraySchema):
        return Types.PRIMITIVE_ARRAY(Types.BYTE())
    return Types.PICKLED_BYTE_ARRAY()


def _now(record: Any) -> int:
    """The time of writing."""
    return int(time.time() * 1000)
