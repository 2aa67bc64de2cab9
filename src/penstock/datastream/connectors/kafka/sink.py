"""KafkaSink and what belongs to it, by PyFlink's names."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any

from penstock.common.serialization import SerializationSchema
from penstock.connectors.delivery import DeliveryGuarantee
from penstock.connectors.kafka.connection import security_protocol
from penstock.connectors.kafka.messages import MessageSchema, check_serializer
from penstock.connectors.kafka.settings import check_property, number_of
from penstock.connectors.kafka.sink import SHORTEST_TIMEOUT_MS, KafkaSinkSettings, TopicSink
from penstock.datastream.connectors.base import StreamTransformer, SupportsPreprocessing
from penstock.errors import ProgramError


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


class KafkaSink(TopicSink, SupportsPreprocessing):
    """Writes to Kafka topics; made by its builder."""

    def get_transformer(self) -> StreamTransformer | None:
        """Nothing comes before it: the writers choose topics themselves."""
        return None

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
            if number_of(key, value) < SHORTEST_TIMEOUT_MS:
                raise ProgramError(
                    f"transaction.timeout.ms is {value}; below {SHORTEST_TIMEOUT_MS} a transaction "
                    "would not outlive a restart"
                )
            self._limits["transaction_timeout_ms"] = number_of(key, value)
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
