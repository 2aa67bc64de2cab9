"""A Kafka cluster without a server: the client library has one inside, for tests.

It speaks Kafka's protocol over sockets, so that other clients take it for a broker, and keeps
messages and the offsets of groups. It does not know who has which transaction.
"""

from __future__ import annotations

import itertools

from confluent_kafka import Producer
from kafka_parts import write

PARTITIONS = 4
"""So many has every topic; a topic comes into being when somebody writes to it."""


class MockCluster:
    """A broker in a thread of this process; it ends with this object."""

    def __init__(self) -> None:
        self._inside = Producer({"test.mock.num.brokers": 1, "log_level": 0})
        [broker] = self._inside.list_topics(timeout=30).brokers.values()
        self.bootstrap_servers = f"{broker.host}:{broker.port}"
        self._numbers = itertools.count(1)

    def topic(self, *partitions: str) -> str:
        """A new topic; each character is a message, in the first partitions."""
        name = f"topic-{next(self._numbers)}"
        for number, values in enumerate(partitions):
            write(self, name, values, partition=number)
        return name
