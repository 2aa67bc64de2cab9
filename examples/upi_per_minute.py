"""UPI per minute: how many payments each merchant got in each minute, from Kafka to Kafka.

Payments are JSON: `{"merchant_id": "Chai Point", "ts_ms": 1700000000000, ...}`, up to five seconds
out of order. A minute is counted by when payments happened, and its counts are written in
transactions, so that a consumer that reads committed records sees each of them once, whatever was
killed. A message holds `["Chai Point", 12]`; its timestamp is the last millisecond of the minute.

    python examples/upi_per_minute.py localhost:9092 payments per-minute /tmp/upi-checkpoints

`make demo-kafka` shows it with a broker, a producer and a consumer.
"""

import json
import sys
from pathlib import Path

from penstock.common import Configuration, Duration, Time, WatermarkStrategy
from penstock.datastream import CheckpointingMode, StreamExecutionEnvironment
from penstock.datastream.connectors.base import DeliveryGuarantee
from penstock.datastream.connectors.kafka import (
    KafkaRecordSerializationSchema,
    KafkaSink,
    KafkaSource,
)
from penstock.datastream.window import TumblingEventTimeWindows


def upi_per_minute(
    env: StreamExecutionEnvironment, servers: str, payments: str, counts: str
) -> None:
    source = (
        KafkaSource.builder()
        .set_bootstrap_servers(servers)
        .set_topics(payments)
        .set_group_id("upi-per-minute")
        .set_starting_offsets("earliest")
        .build()
    )
    sink = (
        KafkaSink.builder()
        .set_bootstrap_servers(servers)
        .set_record_serializer(KafkaRecordSerializationSchema.builder().set_topic(counts).build())
        .set_delivery_guarantee(DeliveryGuarantee.EXACTLY_ONCE)
        .set_transactional_id_prefix("upi-per-minute")
        .build()
    )
    strategy = WatermarkStrategy.for_bounded_out_of_orderness(
        Duration.of_seconds(5)
    ).with_timestamp_assigner(lambda line, record_timestamp: json.loads(line)["ts_ms"])

    (
        env.from_source(source, strategy, "payments")
        .map(lambda line: (json.loads(line)["merchant_id"], 1))
        .key_by(lambda pair: pair[0])
        .window(TumblingEventTimeWindows.of(Time.minutes(1)))
        .reduce(lambda a, b: (a[0], a[1] + b[1]))
        .sink_to(sink)
        .uid("counts")
    )


def main(servers: str, payments: str, counts: str, folder: str, interval_ms: str = "30000") -> None:
    settings = {"execution.checkpointing.dir": Path(folder).absolute().as_uri()}
    env = StreamExecutionEnvironment.get_execution_environment(Configuration.from_dict(settings))
    env.set_parallelism(2)
    env.enable_checkpointing(int(interval_ms), CheckpointingMode.EXACTLY_ONCE)
    upi_per_minute(env, servers, payments, counts)
    env.execute("UPI per minute")


if __name__ == "__main__":
    main(*sys.argv[1:])
