"""A driver in a process of its own: numbers from Kafka, counted by key, to Kafka and PostgreSQL."""

from __future__ import annotations

import json
import sys
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from clusters import local_cluster
from counting_driver import CountingDriver, report
from fault_points import FaultPoints
from job_parts import Count, environment

from penstock.common import WatermarkStrategy
from penstock.datastream.connectors.base import DeliveryGuarantee
from penstock.datastream.connectors.jdbc import JdbcConnectionOptions, JdbcSink
from penstock.datastream.connectors.kafka import (
    KafkaOffsetsInitializer,
    KafkaRecordSerializationSchema,
    KafkaSink,
    KafkaSource,
    KafkaTopicPartition,
)

PARTITIONS, KEYS = 3, 30
_SETTINGS = {"pipeline.jobid": "numbers", **local_cluster(1, 2)}


@dataclass(frozen=True)
class NumbersJob:
    """What the job reads and writes."""

    servers: str
    numbers: str
    out: str
    url: str
    count: int
    points: str


class NumbersDriver(CountingDriver):
    """A running driver of the job."""

    program = __file__

    def __init__(self, folder: Path, job: NumbersJob) -> None:
        more = {"job": asdict(job)}
        super().__init__(folder, parallelism=2, more=more, patience=240, **_SETTINGS)


def key_of(number: int) -> int:
    return number % KEYS


def jdbc(url: str) -> JdbcConnectionOptions:
    return JdbcConnectionOptions.JdbcConnectionOptionsBuilder().with_url(url).build()


def partition_of(record: str, key: Any) -> int:
    return int(record.split()[0]) % PARTITIONS


def main(options: dict[str, Any]) -> None:
    job = NumbersJob(**options["job"])
    checkpoints = Path(options["folder"]) / "checkpoints"
    env = environment(options["parallelism"], checkpoints, "300 ms", options["settings"])
    ends = {
        KafkaTopicPartition(job.numbers, n): len(range(n, job.count, PARTITIONS))
        for n in range(PARTITIONS)
    }
    source = KafkaSource.builder().set_bootstrap_servers(job.servers).set_topics(job.numbers)
    source.set_group_id(job.out).set_bounded(KafkaOffsetsInitializer.offsets(ends))
    stream = env.from_source(source.build(), WatermarkStrategy.no_watermarks(), "numbers")
    counted = stream.map(int).key_by(key_of).process(Count())

    schema = KafkaRecordSerializationSchema.builder().set_topic(job.out)
    sink = KafkaSink.builder().set_bootstrap_servers(job.servers)
    sink.set_record_serializer(schema.set_partitioner(partition_of).build())
    sink.set_delivery_guarantee(DeliveryGuarantee.EXACTLY_ONCE)
    # A broker that is away for longer than this fails deliveries, not just delays them.
    sink.set_transactional_id_prefix(job.out).set_property("message.timeout.ms", "4000")
    lines = counted.map(lambda one: f"{one[0]} {one[1]} {one[2]}")
    lines.sink_to(FaultPoints(sink.build(), job.points)).uid("kafka")

    sql = "INSERT INTO counted (k, c, n) VALUES (?, ?, ?)"
    rows = JdbcSink.exactly_once_sink(sql, None, jdbc(job.url))
    counted.sink_to(FaultPoints(rows, job.points)).uid("postgres")
    report(env.execute_async("numbers"))


if __name__ == "__main__":
    main(json.loads(sys.argv[1]))
