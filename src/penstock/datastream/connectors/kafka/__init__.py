"""Kafka as a source and as a sink, by PyFlink's names.

It needs the package confluent-kafka: ``pip install 'penstock[kafka]'``.
"""

from penstock.common import (
    DeserializationSchema,
    Row,
    SerializationSchema,
    TypeInformation,
    Types,
)
from penstock.common import typeinfo as typeinfo
from penstock.connectors.delivery import DeliveryGuarantee
from penstock.connectors.kafka.records import ConsumerRecord, JsonSchema
from penstock.connectors.sink import Sink
from penstock.connectors.source import Source
from penstock.datastream.connectors.kafka.older import (
    FlinkKafkaConsumer,
    FlinkKafkaProducer,
    Semantic,
)
from penstock.datastream.connectors.kafka.sink import (
    KafkaRecordSerializationSchema,
    KafkaRecordSerializationSchemaBuilder,
    KafkaSink,
    KafkaSinkBuilder,
    KafkaTopicSelector,
)
from penstock.datastream.connectors.kafka.source import (
    KafkaOffsetResetStrategy,
    KafkaOffsetsInitializer,
    KafkaSource,
    KafkaSourceBuilder,
    KafkaTopicPartition,
)
from penstock.datastream.functions import SinkFunction, SourceFunction

__all__ = [
    "ConsumerRecord",
    "DeliveryGuarantee",
    "DeserializationSchema",
    "FlinkKafkaConsumer",
    "FlinkKafkaProducer",
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
    "Row",
    "Semantic",
    "SerializationSchema",
    "Sink",
    "SinkFunction",
    "Source",
    "SourceFunction",
    "TypeInformation",
    "Types",
]
