"""The UPI job from Kafka to Kafka, exactly once, against a loop that promises nothing.

The job has parallelism 2 and checkpoints every second; its output is there when it is committed.
The loop is one process that reads the same topic with confluent-kafka, calls the same functions,
and produces its results without transactions.

    python -m bench.kafka_upi --interval "300 ms"

measures the job with that interval against the same job with a second: what frequent checkpoints,
and so output that is seen soon, cost of the rate.
"""

import argparse
import json
import tempfile
import time
from collections.abc import Iterator
from typing import Any

from confluent_kafka import Consumer, Producer, TopicPartition

from bench.common import Rounds, Run, interleaved, result_row, share_with_workers
from bench.data import RECORDS, parts, upi_payments
from bench.stamps import mark, notes
from bench.upi_job import STRATEGY, per_minute, to_pair
from bench.upi_loop import windows_of
from penstock.common import Configuration
from penstock.connectors import Committer
from penstock.connectors.kafka.source import CONSUMER_DEFAULTS, CONSUMER_RULES
from penstock.datastream import StreamExecutionEnvironment
from penstock.datastream.connectors.base import DeliveryGuarantee
from penstock.datastream.connectors.kafka import (
    KafkaRecordSerializationSchema,
    KafkaSink,
    KafkaSource,
)
from penstock.datastream.functions import MapFunction, RuntimeContext
from penstock.testing.kafka import KafkaBroker, kafka_broker

PARTITIONS = 2
PAYMENTS, COUNTS = "payments", "counts"
INTERVAL = "1 s"


class ToPair(MapFunction):
    """Notes when it was opened, which is just before the first record is read."""

    def __init__(self, folder: str) -> None:
        self._folder = folder

    def open(self, runtime_context: RuntimeContext) -> None:
        mark(self._folder, "opened")

    def map(self, value: str) -> Any:
        return to_pair(value)


class NotedSink(KafkaSink):
    """Notes when output was committed."""

    folder = ""

    def create_committer(self, context: Any) -> Committer | None:
        committer = super().create_committer(context)
        assert committer is not None
        return NotedCommitter(committer, self.folder)


class NotedCommitter(Committer):
    def __init__(self, committer: Committer, folder: str) -> None:
        self._committer = committer
        self._folder = folder

    def commit(self, committables: list[Any]) -> None:
        self._committer.commit(committables)
        mark(self._folder, "committed")

    def abort_others(self, keep: list[Any]) -> None:
        self._committer.abort_others(keep)

    def close(self) -> None:
        self._committer.close()


def fill(broker: KafkaBroker) -> None:
    broker.create_topic(PAYMENTS, PARTITIONS)
    producer = Producer({"bootstrap.servers": broker.bootstrap_servers, "linger.ms": 50})
    number = 0
    for part in parts(upi_payments(RECORDS)):
        for line in part.read_bytes().splitlines():
            while True:
                try:
                    producer.produce(PAYMENTS, line, partition=number % PARTITIONS)
                    break
                except BufferError:
                    producer.poll(0.1)
            number += 1
    producer.flush()


def penstock(broker: KafkaBroker, topic: str, interval: str = INTERVAL) -> Run:
    broker.create_topic(topic, PARTITIONS)
    with tempfile.TemporaryDirectory() as folder:
        settings = {
            "parallelism.default": 2,
            "execution.checkpointing.interval": interval,
            "execution.checkpointing.dir": f"file://{folder}/checkpoints",
        }
        configuration = Configuration.from_dict(settings)
        env = StreamExecutionEnvironment.get_execution_environment(configuration)
        builder = KafkaSource.builder().set_bootstrap_servers(broker.bootstrap_servers)
        source = builder.set_topics(PAYMENTS).set_bounded("latest").build()
        per_minute(
            env.from_source(source, STRATEGY, "payments"),
            _sink(broker, topic, folder),
            ToPair(folder),
        )
        called = time.time_ns()
        env.execute("UPI per minute")
        wall = (time.time_ns() - called) / 1e9
        opened = min(at for [at] in notes(folder, "opened"))
        ended = max(at for [at] in notes(folder, "committed"))
    return Run(records=_sum(broker, topic), seconds=(ended - opened) / 1e9, wall=wall)


def _sink(broker: KafkaBroker, topic: str, folder: str) -> KafkaSink:
    builder = KafkaSink.builder().set_bootstrap_servers(broker.bootstrap_servers)
    builder.set_record_serializer(KafkaRecordSerializationSchema.builder().set_topic(topic).build())
    builder.set_delivery_guarantee(DeliveryGuarantee.EXACTLY_ONCE)
    built = builder.set_transactional_id_prefix(topic).build()
    sink = NotedSink(built._settings)
    sink.folder = folder
    return sink


class Results:
    """Produces results as JSON, as the sink does."""

    def __init__(self, broker: KafkaBroker, topic: str) -> None:
        self._topic = topic
        self._producer = Producer({"bootstrap.servers": broker.bootstrap_servers, "linger.ms": 5})

    def write(self, value: Any) -> None:
        self._producer.produce(self._topic, json.dumps(value).encode())
        self._producer.poll(0)

    def close(self) -> None:
        self._producer.flush()


def loop(broker: KafkaBroker, topic: str) -> Run:
    broker.create_topic(topic, PARTITIONS)
    started = time.time_ns()
    windows_of(_lines(broker), Results(broker, topic))
    seconds = (time.time_ns() - started) / 1e9
    return Run(records=_sum(broker, topic), seconds=seconds, wall=seconds)


def _lines(broker: KafkaBroker) -> Iterator[str]:
    return (message.value().decode() for message in _messages(broker, PAYMENTS, PARTITIONS))


def _messages(broker: KafkaBroker, topic: str, partitions: int) -> Iterator[Any]:
    """All messages of a topic."""
    settings = {**CONSUMER_DEFAULTS, **CONSUMER_RULES, "group.id": "bench"}
    consumer = Consumer({**settings, "bootstrap.servers": broker.bootstrap_servers})
    consumer.assign([TopicPartition(topic, number, 0) for number in range(partitions)])
    ended = 0
    while ended < partitions:
        for message in consumer.consume(2000, 0.1):
            if message.error() is None:
                yield message
            else:
                ended += 1
    consumer.close()


def _sum(broker: KafkaBroker, topic: str) -> int:
    """How many payments the results stand for."""
    return sum(json.loads(one.value())[1] for one in _messages(broker, topic, PARTITIONS))


def compare_with_loop(broker: KafkaBroker, topics: Iterator[str]) -> str:
    """The job against the loop."""
    rounds = interleaved(
        penstock=lambda: penstock(broker, next(topics)),
        loop=lambda: loop(broker, next(topics)),
    )
    ratio, details = _compared(rounds, "penstock", "loop")
    details += f"; wall of execute() {rounds.wall('penstock'):.1f} s"
    return result_row("kafka_upi", f"{ratio:.2f} x the loop without transactions", details)


def compare_intervals(broker: KafkaBroker, topics: Iterator[str], interval: str) -> str:
    """The job with this interval against the job with a second."""
    rounds = interleaved(
        often=lambda: penstock(broker, next(topics), interval),
        seldom=lambda: penstock(broker, next(topics)),
    )
    ratio, details = _compared(rounds, "often", "seldom")
    figure = f"{ratio:.2f} x its rate with a checkpoint every {INTERVAL}"
    return result_row(f"kafka_upi every {interval}", figure, details, f'--interval "{interval}"')


def _compared(rounds: Rounds, name: str, baseline: str) -> tuple[float, str]:
    """The ratio of the rates, and what it is made of, if all results are right."""
    for contender, runs in rounds.runs.items():
        wrong = [run.records for run in runs if run.records != RECORDS]
        if wrong:
            raise SystemExit(
                f"{contender}: results should stand for {RECORDS} payments, not {wrong}"
            )
    print(rounds.table())
    low, high = rounds.spread(name, baseline)
    details = (
        f"{rounds.rate(name):,.0f}/s of {rounds.rate(baseline):,.0f}/s, rounds {low:.2f}-{high:.2f}"
    )
    return rounds.ratio(name, baseline), details


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--interval", help="compare the job at this interval with it at a second")
    given = parser.parse_args()
    share_with_workers()
    with kafka_broker() as broker:
        fill(broker)
        topics = (f"{COUNTS}-{number}" for number in range(1000))
        penstock(broker, next(topics))  # makes the session
        if given.interval is None:
            print(compare_with_loop(broker, topics))
        else:
            print(compare_intervals(broker, topics, given.interval))


if __name__ == "__main__":
    main()
