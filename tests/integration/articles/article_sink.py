"""The function that articles name and do not show."""

from pyflink.datastream.connectors.base import DeliveryGuarantee
from pyflink.datastream.connectors.kafka import KafkaRecordSerializationSchema, KafkaSink


def kafka_sink_with_transactional_id(topic):
    return (
        KafkaSink.builder()
        .set_bootstrap_servers("kafka.payments.internal:9092")
        .set_record_serializer(KafkaRecordSerializationSchema.builder().set_topic(topic).build())
        .set_delivery_guarantee(DeliveryGuarantee.EXACTLY_ONCE)
        .set_transactional_id_prefix(topic)
        .build()
    )
