"""KafkaSource and what belongs to it, by PyFlink's names."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from enum import Enum
from typing import Any

from penstock.common.serialization import DeserializationSchema
from penstock.connectors.kafka.offsets import OffsetRule
from penstock.connectors.kafka.partitions import Subscription
from penstock.connectors.kafka.records import (
    BadRecords,
    ConsumerRecord,
    KeyValueDecoder,
    RecordDecoder,
    ValueDecoder,
    check_schema,
)
from penstock.connectors.kafka.settings import check_property, number_of
from penstock.connectors.kafka.source import KafkaSourceSettings, PartitionsSource
from penstock.errors import ProgramError


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

    def skip_bad_records(self) -> KafkaSourceBuilder:
        """Leave records out that cannot be decoded, and count them; else they are an error."""
        return self._with(on_bad_record=BadRecords.SKIP)

    def keep_bad_records(self) -> KafkaSourceBuilder:
        """A `BadRecord` takes the place of a record that cannot be decoded.

        They are counted too. `process(DivertBadRecords(tag))` right behind the source sends them
        to a side output.
        """
        return self._with(on_bad_record=BadRecords.KEEP)

    def read_recreated_topics(self) -> KafkaSourceBuilder:
        """Read a topic that was deleted and made anew from its beginning; else it is an error.

        A job that runs restarts for it. For sources without stopping offsets.
        """
        return self._with(read_recreated=True)

    def set_client_id_prefix(self, prefix: str) -> KafkaSourceBuilder:
        """What clients call themselves, followed by the number of the subtask."""
        return self._with(client_id_prefix=prefix)

    def set_property(self, key: str, value: str) -> KafkaSourceBuilder:
        """A property of the client, librdkafka, or one of those that Flink's source knows."""
        value = check_property(key, value)
        if key == "partition.discovery.interval.ms":
            interval = number_of(key, value)
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


def _rule(initializer: KafkaOffsetsInitializer | str) -> OffsetRule:
    if isinstance(initializer, str):
        return OffsetRule.of(initializer)
    if isinstance(initializer, KafkaOffsetsInitializer):
        return initializer._rule
    raise ProgramError(
        f"offsets are a KafkaOffsetsInitializer or a string, not a {type(initializer).__name__}"
    )
