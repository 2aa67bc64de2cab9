"""Kafka as a source and as a sink, by PyFlink's names.

It needs the package confluent-kafka: ``pip install 'penstock[kafka]'``.
"""

from penstock.connectors.kafka.records import ConsumerRecord, JsonSchema
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

__all__ = [
    "ConsumerRecord",
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
    "Semantic",
]
