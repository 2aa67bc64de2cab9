"""Kafka as a source and as a sink, by PyFlink's names.

It needs the package confluent-kafka: ``pip install 'penstock[kafka]'``.
"""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from enum import Enum
from typing import Any

from penstock.common.serialization import DeserializationSchema, SerializationSchema
from penstock.connectors.delivery import DeliveryGuarantee
from penstock.connectors.kafka.connection import security_protocol
from penstock.connectors.kafka.messages import MessageSchema, check_serializer
from penstock.connectors.kafka.offsets import OffsetRule
from penstock.connectors.kafka.partitions import Subscription
from penstock.connectors.kafka.records import (
    ConsumerRecord,
    JsonSchema,
    KeyValueDecoder,
    RecordDecoder,
    ValueDecoder,
    check_schema,
)
from penstock.connectors.kafka.settings import check_property
from penstock.connectors.kafka.sink import (
    SHORTEST_TIMEOUT_MS,
    KafkaSinkSettings,
    TopicSink,
)
from penstock.connectors.kafka.source import KafkaSourceSettings, PartitionsSource
from penstock.errors import ProgramError

__all__ = [
    "ConsumerRecord",
    "JsonSchema",
    "KafkaOffsetResetStrategy",
    "KafkaOffsetsInitializer",
    "KafkaRecordSerializationSchema",
    "KafkaRecordSerializationSchemaBuilder",
    "KafkaSink",
    "KafkaSinkBuilder",
    "KafkaSource",
    "KafkaSourceBuilder",
    "KafkaTopicPartition",
    "KafkaTopicSelector",
]


# --- source -----------------------------------------------------------------------------------


class KafkaTopicPartition:
    """A partition of a topic."""

    def __init__(self, topic: str, partition: int) -> None:
        self.topic = topic
        self.partition = partition

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, KafkaTopicPartition):
            return NotImplemented
        return (self.topic, self.partition) == (other.topic, other.partition)

    def __hash__(self) -> int:
        return hash((self.topic, self.partition))

    def __repr__(self) -> str:
        return f"KafkaTopicPartition({self.topic!r}, {self.partition})"


class KafkaOffsetResetStrategy(Enum):
    """What is taken where there is no offset, or one that the partition does not have."""

    LATEST = "latest"
    EARLIEST = "earliest"
    NONE = "none"
    """An error."""


class KafkaOffsetsInitializer:
    """Where reading starts, or stops."""

    def __init__(self, rule: OffsetRule) -> None:
        self._rule = rule

    @staticmethod
    def committed_offsets(
        offset_reset_strategy: KafkaOffsetResetStrategy = KafkaOffsetResetStrategy.NONE,
    ) -> KafkaOffsetsInitializer:
        """What the group has committed."""
        reset = offset_reset_strategy.value
        return KafkaOffsetsInitializer(OffsetRule("committed", reset=reset))

    @staticmethod
    def timestamp(timestamp: int) -> KafkaOffsetsInitializer:
        """The first record that is not older than this, in milliseconds since 1970."""
        return KafkaOffsetsInitializer(OffsetRule("timestamp", timestamp_ms=timestamp))

    @staticmethod
    def earliest() -> KafkaOffsetsInitializer:
        """The oldest record there is."""
        return KafkaOffsetsInitializer(OffsetRule("earliest"))

    @staticmethod
    def latest() -> KafkaOffsetsInitializer:
        """Behind the newest record there is."""
        return KafkaOffsetsInitializer(OffsetRule("latest"))

    @staticmethod
    def offsets(
        offsets: Mapping[KafkaTopicPartition, int],
        offset_reset_strategy: KafkaOffsetResetStrategy = KafkaOffsetResetStrategy.EARLIEST,
    ) -> KafkaOffsetsInitializer:
        """An offset for each partition."""
        chosen = {(place.topic, place.partition): offset for place, offset in offsets.items()}
        reset = offset_reset_strategy.value
        return KafkaOffsetsInitializer(OffsetRule("explicit", offsets=chosen, reset=reset))


class KafkaSource(PartitionsSource):
    """Reads Kafka topics; made by its builder."""

    @staticmethod
    def builder() -> KafkaSourceBuilder:
        """A builder with nothing set."""
        return KafkaSourceBuilder()


class KafkaSourceBuilder:
    """Builds a KafkaSource. Topics and servers are needed; all else has a default."""

    def __init__(self) -> None:
        self._subscription: Subscription | None = None
        self._properties: dict[str, str] = {}
        self._settings = KafkaSourceSettings(Subscription(), {})

    def set_bootstrap_servers(self, bootstrap_servers: str) -> KafkaSourceBuilder:
        """Servers to begin with: ``host:port,host:port``."""
        return self.set_property("bootstrap.servers", bootstrap_servers)

    def set_group_id(self, group_id: str) -> KafkaSourceBuilder:
        """The consumer group whose offsets are committed at checkpoints."""
        return self.set_property("group.id", group_id)

    def set_topics(self, *topics: str) -> KafkaSourceBuilder:
        """Read these topics."""
        if len(topics) == 1 and isinstance(topics[0], (list, tuple)):
            topics = tuple(topics[0])
        if not topics or not all(isinstance(topic, str) for topic in topics):
            raise ProgramError("set_topics() needs names of topics")
        return self._subscribe(Subscription(topics=topics))

    def set_topic_pattern(self, topic_pattern: str) -> KafkaSourceBuilder:
        """Read all topics whose whole name matches this regular expression."""
        try:
            re.compile(topic_pattern)
        except re.error as error:
            raise ProgramError(f"{topic_pattern!r} is no regular expression: {error}") from error
        return self._subscribe(Subscription(pattern=topic_pattern))

    def set_partitions(self, partitions: Iterable[KafkaTopicPartition]) -> KafkaSourceBuilder:
        """Read these partitions and no others."""
        chosen = tuple((place.topic, place.partition) for place in partitions)
        if not chosen:
            raise ProgramError("set_partitions() needs at least one partition")
        return self._subscribe(Subscription(partitions=chosen))

    def set_starting_offsets(
        self, starting_offsets_initializer: KafkaOffsetsInitializer | str
    ) -> KafkaSourceBuilder:
        """Where reading starts when there is no checkpoint: earliest unless set."""
        return self._with(start=_rule(starting_offsets_initializer))

    def set_unbounded(
        self, stopping_offsets_initializer: KafkaOffsetsInitializer | str | None = None
    ) -> KafkaSourceBuilder:
        """Read on and on, or until these offsets."""
        stop = stopping_offsets_initializer
        return self._with(stop=None if stop is None else _rule(stop), bounded=False)

    def set_bounded(
        self, stopping_offsets_initializer: KafkaOffsetsInitializer | str
    ) -> KafkaSourceBuilder:
        """End at these offsets, as they are when the job starts."""
        return self._with(stop=_rule(stopping_offsets_initializer), bounded=True)

    def set_value_only_deserializer(
        self, deserialization_schema: DeserializationSchema
    ) -> KafkaSourceBuilder:
        """A record is what this makes of a message's value; without it, a str."""
        schema = check_schema(deserialization_schema, "set_value_only_deserializer")
        return self._with(decoder=ValueDecoder(schema))

    def set_key_value_deserializer(
        self,
        key_schema: DeserializationSchema | None = None,
        value_schema: DeserializationSchema | None = None,
    ) -> KafkaSourceBuilder:
        """A record is a pair of key and value; a part without a schema is a str."""
        for schema in (key_schema, value_schema):
            if schema is not None:
                check_schema(schema, "set_key_value_deserializer")
        return self._with(decoder=KeyValueDecoder(key_schema, value_schema))

    def set_record_deserializer(
        self,
        function: Callable[[ConsumerRecord], Any] | None = None,
        key_schema: DeserializationSchema | None = None,
        value_schema: DeserializationSchema | None = None,
    ) -> KafkaSourceBuilder:
        """A record is a `ConsumerRecord`, or what `function` makes of one.

        Given a function and no schemas, key and value are bytes in what it gets.
        """
        if function is not None and not callable(function):
            raise ProgramError("set_record_deserializer() needs a function")
        raw = function is not None and key_schema is None and value_schema is None
        return self._with(decoder=RecordDecoder(key_schema, value_schema, function, raw))

    def skip_bad_records(self, skip: bool = True) -> KafkaSourceBuilder:
        """Leave records out that cannot be decoded, and count them; else they are an error."""
        return self._with(skip_bad_records=skip)

    def set_client_id_prefix(self, prefix: str) -> KafkaSourceBuilder:
        """What clients call themselves, followed by the number of the subtask."""
        return self._with(client_id_prefix=prefix)

    def set_property(self, key: str, value: str) -> KafkaSourceBuilder:
        """A property of the client, librdkafka, or one of those that Flink's source knows."""
        value = check_property(key, value)
        if key == "partition.discovery.interval.ms":
            interval = _number(key, value)
            return self._with(discovery_ms=interval if interval > 0 else None)
        if key == "commit.offsets.on.checkpoint":
            return self._with(commit_offsets=value.lower() == "true")
        if key == "client.id.prefix":
            return self.set_client_id_prefix(value)
        if key == "group.id":
            return self._with(group=value)
        self._properties[key] = value
        return self

    def set_properties(self, props: Mapping[str, str]) -> KafkaSourceBuilder:
        """Several properties."""
        for key, value in props.items():
            self.set_property(key, value)
        return self

    def build(self) -> KafkaSource:
        """The source."""
        if "bootstrap.servers" not in self._properties:
            raise ProgramError("a Kafka source needs set_bootstrap_servers()")
        if self._subscription is None:
            raise ProgramError(
                "a Kafka source needs set_topics(), set_topic_pattern() or set_partitions()"
            )
        settings = self._settings
        if settings.group is None and "committed" in (
            settings.start.kind,
            settings.stop.kind if settings.stop is not None else "",
        ):
            raise ProgramError("committed offsets are those of a group: set_group_id() names it")
        return KafkaSource(
            replace(settings, subscription=self._subscription, properties=dict(self._properties))
        )

    def _subscribe(self, subscription: Subscription) -> KafkaSourceBuilder:
        if self._subscription is not None:
            raise ProgramError("a Kafka source has topics, a pattern or partitions, set once")
        self._subscription = subscription
        return self

    def _with(self, **changes: Any) -> KafkaSourceBuilder:
        self._settings = replace(self._settings, **changes)
        return self


# --- sink -------------------------------------------------------------------------------------


class KafkaTopicSelector(ABC):
    """Chooses the topic of a record."""

    @abstractmethod
    def apply(self, data: Any) -> str:
        """The topic that `data` goes to."""


class KafkaRecordSerializationSchema(SerializationSchema):
    """How records become messages; made by its builder."""

    def __init__(self, schema: MessageSchema) -> None:
        self._schema = schema
        self._message = schema.compiled()

    @staticmethod
    def builder() -> KafkaRecordSerializationSchemaBuilder:
        """A builder with nothing set."""
        return KafkaRecordSerializationSchemaBuilder()

    def serialize(self, value: Any) -> bytes | None:
        """The bytes of the message's value."""
        made: bytes | None = self._message(value)["value"]
        return made


class KafkaRecordSerializationSchemaBuilder:
    """Builds a KafkaRecordSerializationSchema. A topic is needed; all else has a default."""

    def __init__(self) -> None:
        self._parts: dict[str, Any] = {}

    def set_topic(self, topic: str) -> KafkaRecordSerializationSchemaBuilder:
        """All records go to this topic."""
        if not isinstance(topic, str) or not topic:
            raise ProgramError("set_topic() needs the name of a topic")
        return self._with(topic=topic)

    def set_topic_selector(
        self, topic_selector: KafkaTopicSelector | Callable[[Any], str]
    ) -> KafkaRecordSerializationSchemaBuilder:
        """Each record goes where this says: a KafkaTopicSelector or a function."""
        return self._with(topic=_function(topic_selector, "apply", "set_topic_selector"))

    def set_key_serialization_schema(
        self, key_serialization_schema: SerializationSchema
    ) -> KafkaRecordSerializationSchemaBuilder:
        """Makes a message's key of a record; without it messages have none."""
        method = "set_key_serialization_schema"
        return self._with(key=check_serializer(key_serialization_schema, method))

    def set_value_serialization_schema(
        self, value_serialization_schema: SerializationSchema
    ) -> KafkaRecordSerializationSchemaBuilder:
        """Makes a message's value of a record.

        Without it, str and bytes are written as they are, and other values as JSON.
        """
        method = "set_value_serialization_schema"
        return self._with(value=check_serializer(value_serialization_schema, method))

    def set_header_provider(
        self, header_provider: Callable[[Any], Any]
    ) -> KafkaRecordSerializationSchemaBuilder:
        """A function from a record to headers: pairs of a name and bytes, or a dict."""
        headers = _function(header_provider, "get_headers", "set_header_provider")
        return self._with(headers=headers)

    def set_timestamp(
        self, timestamp: Callable[[Any], int]
    ) -> KafkaRecordSerializationSchemaBuilder:
        """A function from a record to the message's timestamp, in milliseconds since 1970."""
        return self._with(timestamp=_function(timestamp, "apply", "set_timestamp"))

    def set_partitioner(
        self, partitioner: Callable[[Any, Any], int]
    ) -> KafkaRecordSerializationSchemaBuilder:
        """A function from a record and its key's bytes to the number of a partition."""
        return self._with(partition=_function(partitioner, "partition", "set_partitioner"))

    def build(self) -> KafkaRecordSerializationSchema:
        """The schema."""
        if "topic" not in self._parts:
            raise ProgramError("a record serializer needs set_topic() or set_topic_selector()")
        return KafkaRecordSerializationSchema(MessageSchema(**self._parts))

    def _with(self, **part: Any) -> KafkaRecordSerializationSchemaBuilder:
        self._parts.update(part)
        return self


class KafkaSink(TopicSink):
    """Writes to Kafka topics; made by its builder."""

    @staticmethod
    def builder() -> KafkaSinkBuilder:
        """A builder with nothing set."""
        return KafkaSinkBuilder()


class KafkaSinkBuilder:
    """Builds a KafkaSink. Servers and a record serializer are needed."""

    def __init__(self) -> None:
        self._properties: dict[str, str] = {}
        self._guarantee = DeliveryGuarantee.AT_LEAST_ONCE
        self._prefix: str | None = None
        self._serializer: KafkaRecordSerializationSchema | None = None
        self._limits: dict[str, Any] = {}

    def set_bootstrap_servers(self, bootstrap_servers: str) -> KafkaSinkBuilder:
        """Servers to begin with: ``host:port,host:port``."""
        return self.set_property("bootstrap.servers", bootstrap_servers)

    def set_delivery_guarantee(self, delivery_guarantee: DeliveryGuarantee) -> KafkaSinkBuilder:
        """What is promised when something fails; at least once unless set."""
        if not isinstance(delivery_guarantee, DeliveryGuarantee):
            raise ProgramError("set_delivery_guarantee() needs a DeliveryGuarantee")
        self._guarantee = delivery_guarantee
        return self

    def set_transactional_id_prefix(self, transactional_id_prefix: str) -> KafkaSinkBuilder:
        """What transactional ids begin with, for delivery exactly once.

        One live job at a time may use a prefix; another one is refused.
        """
        if not isinstance(transactional_id_prefix, str) or not transactional_id_prefix:
            raise ProgramError("set_transactional_id_prefix() needs a name")
        if "/" in transactional_id_prefix:
            raise ProgramError(
                f"the transactional id prefix {transactional_id_prefix!r} may not hold a '/', "
                "which stands between the parts of an id"
            )
        self._prefix = transactional_id_prefix
        return self

    def set_record_serializer(
        self, record_serializer: KafkaRecordSerializationSchema
    ) -> KafkaSinkBuilder:
        """How records become messages."""
        if not isinstance(record_serializer, KafkaRecordSerializationSchema):
            raise ProgramError(
                "set_record_serializer() needs a KafkaRecordSerializationSchema, not a "
                f"{type(record_serializer).__name__}"
            )
        self._serializer = record_serializer
        return self

    def set_property(self, key: str, value: str) -> KafkaSinkBuilder:
        """A property of the client, librdkafka."""
        value = check_property(key, value)
        if key == "transactional.id":
            raise ProgramError("transactional ids are made from set_transactional_id_prefix()")
        if key == "transaction.timeout.ms":
            if _number(key, value) < SHORTEST_TIMEOUT_MS:
                raise ProgramError(
                    f"transaction.timeout.ms is {value}; below {SHORTEST_TIMEOUT_MS} a transaction "
                    "would not outlive a restart"
                )
            self._limits["transaction_timeout_ms"] = _number(key, value)
            return self
        self._properties[key] = value
        return self

    def build(self) -> KafkaSink:
        """The sink."""
        if "bootstrap.servers" not in self._properties:
            raise ProgramError("a Kafka sink needs set_bootstrap_servers()")
        if self._serializer is None:
            raise ProgramError("a Kafka sink needs set_record_serializer()")
        if self._guarantee is DeliveryGuarantee.EXACTLY_ONCE:
            if self._prefix is None:
                raise ProgramError("delivery exactly once needs set_transactional_id_prefix()")
            security_protocol(self._properties)
        return KafkaSink(
            KafkaSinkSettings(
                dict(self._properties),
                self._serializer._schema,
                self._guarantee,
                self._prefix or "",
                **self._limits,
            )
        )


def _function(given: Any, method: str, setter: str) -> Callable[..., Any]:
    found = getattr(given, method, given)
    if not callable(found):
        raise ProgramError(
            f"{setter}() needs a function, or an object with a method {method}, not a "
            f"{type(given).__name__}"
        )
    function: Callable[..., Any] = found
    return function


def _rule(initializer: KafkaOffsetsInitializer | str) -> OffsetRule:
    if isinstance(initializer, str):
        return OffsetRule.of(initializer)
    if isinstance(initializer, KafkaOffsetsInitializer):
        return initializer._rule
    raise ProgramError(
        f"offsets are a KafkaOffsetsInitializer or a string, not a {type(initializer).__name__}"
    )


def _number(key: str, value: str) -> int:
    try:
        return int(value)
    except ValueError:
        raise ProgramError(f"the Kafka property {key} is a number, not {value!r}") from None
