"""Payments per merchant and minute, written as a program for PyFlink is: run by `--pyflink`.

It names the servers of another place, and only the configuration says where they are.
"""

import json

from article_sink import kafka_sink_with_transactional_id
from pyflink.common import Duration, Time
from pyflink.common.watermark_strategy import WatermarkStrategy
from pyflink.datastream import CheckpointingMode, StreamExecutionEnvironment
from pyflink.datastream.connectors.kafka import KafkaSource
from pyflink.datastream.window import TumblingEventTimeWindows

env = StreamExecutionEnvironment.get_execution_environment()
env.enable_checkpointing(30_000, CheckpointingMode.EXACTLY_ONCE)
env.get_checkpoint_config().set_checkpoint_storage_dir("s3://article-checkpoints/upi/")

payments = (
    KafkaSource.builder()
    .set_bootstrap_servers("kafka.payments.internal:9092")
    .set_topics("article-payments")
    .set_group_id("per-minute-counter")
    .set_starting_offsets("earliest")
    .build()
)
event_time = WatermarkStrategy.for_bounded_out_of_orderness(
    Duration.of_seconds(5)
).with_timestamp_assigner(lambda r, _: json.loads(r)["ts_ms"])

(
    env.from_source(payments, event_time, "upi-source")
    .map(lambda r: (json.loads(r)["merchant_id"], 1))
    .key_by(lambda x: x[0])
    .window(TumblingEventTimeWindows.of(Time.minutes(1)))
    .reduce(lambda a, b: (a[0], a[1] + b[1]))
    .sink_to(kafka_sink_with_transactional_id("article-counts"))
)
env.execute("upi-per-minute")
