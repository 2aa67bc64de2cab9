"""Several Kafka brokers that are one cluster, for what a single one cannot show.

Every broker is a controller too, so that the cluster goes on without any one of three. A topic has
a copy on each of them unless it is asked for fewer.
"""

from __future__ import annotations

import contextlib
import shutil
import tempfile
import time
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from confluent_kafka.admin import AdminClient

from penstock.errors import PenstockError
from penstock.testing.children import START_SECONDS
from penstock.testing.kafka.broker import KafkaBroker, Seat, Security


class KafkaCluster:
    """Brokers that know each other. Made by `kafka_cluster`."""

    def __init__(self, brokers: list[KafkaBroker]) -> None:
        self.brokers = brokers
        self.bootstrap_servers = ",".join(broker.bootstrap_servers for broker in brokers)

    def start(self) -> None:
        """Start those that do not run, and wait until all know each other."""
        for broker in self.brokers:
            if not broker.runs:
                broker.launch()
        for broker in self.brokers:
            broker.await_answer()
        deadline = time.monotonic() + START_SECONDS
        while len(self._admin().list_topics(timeout=30).brokers) < len(self.brokers):
            if time.monotonic() > deadline:
                raise PenstockError("the brokers do not find each other")
            time.sleep(0.1)

    def kill(self) -> None:
        """kill -9, all of them."""
        for broker in self.brokers:
            broker.kill()

    def create_topic(self, name: str, partitions: int = 1, **settings: str) -> None:
        """Create a topic, or add partitions to it; settings with `_` for each dot."""
        next(one for one in self.brokers if one.runs).create_topic(name, partitions, **settings)

    def leader(self, topic: str, partition: int = 0) -> KafkaBroker | None:
        """The broker that leads a partition, if one does."""
        found = self._admin().list_topics(topic, timeout=30).topics[topic].partitions[partition]
        return self.brokers[found.leader - 1] if found.leader > 0 else None

    def in_sync(self, topic: str, partition: int = 0) -> int:
        """How many copies of a partition are up to date."""
        found = self._admin().list_topics(topic, timeout=30).topics[topic].partitions[partition]
        return len(found.isrs)

    def _admin(self) -> AdminClient:
        return AdminClient({"bootstrap.servers": self.bootstrap_servers, "log_level": 0})


@contextlib.contextmanager
def kafka_cluster(
    count: int = 3, settings: Mapping[str, str] | None = None
) -> Iterator[KafkaCluster]:
    """A running cluster while the block runs; nothing of it is left afterwards."""
    copies = {
        "default.replication.factor": str(count),
        "offsets.topic.replication.factor": str(count),
        "transaction.state.log.replication.factor": str(count),
        "transaction.state.log.min.isr": str(count // 2 + 1),
        # Brokers beside each other on a busy machine do not hear of each other for a while.
        "broker.session.timeout.ms": "6000",
        # Broker 1 would lead everything, and be given the lead again when it comes back.
        "auto.leader.rebalance.enable": "false",
    }
    folder = Path(tempfile.mkdtemp(prefix="penstock-kafka-"))

    def made(seat: Seat) -> KafkaBroker:
        own = {**copies, **(settings or {})}
        return KafkaBroker(folder / str(seat.number), own, Security(), seat)

    try:
        with ThreadPoolExecutor(count) as pool:
            cluster = KafkaCluster(list(pool.map(made, Seat.new(count))))
        try:
            cluster.start()
            yield cluster
        finally:
            cluster.kill()
    finally:
        shutil.rmtree(folder, ignore_errors=True)
