"""Which partitions a source reads: those of named topics, of topics by pattern, or a fixed set."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from penstock.connectors.kafka.offsets import ASK_SECONDS, Partition
from penstock.connectors.kafka.rights import failure
from penstock.connectors.kafka.settings import logged, need_client
from penstock.errors import SourceMissingError


@dataclass(frozen=True)
class Subscription:
    """Topics, a pattern for topics, or partitions: one of the three."""

    topics: tuple[str, ...] = ()
    pattern: str | None = None
    partitions: tuple[Partition, ...] = ()

    def find(self, properties: Mapping[str, str]) -> list[Partition]:
        """The partitions that exist now, in order; SourceError if one that is named does not."""
        kafka = need_client()
        from confluent_kafka.admin import AdminClient

        admin = AdminClient(logged(properties))
        try:
            metadata = admin.list_topics(timeout=ASK_SECONDS)
        except kafka.KafkaException as error:
            servers = properties.get("bootstrap.servers")
            raise failure(f"Kafka at {servers} does not answer", error) from error
        known = {
            name: sorted(topic.partitions)
            for name, topic in metadata.topics.items()
            if topic.error is None
        }
        hidden = self._named().difference(known)
        # Without a controller, which a cluster may lack for a moment, nobody answers.
        if hidden and metadata.controller_id in metadata.brokers:
            _ask_why(admin, hidden)
        return self.select(known)

    def _named(self) -> set[str]:
        """Topics that must be there."""
        return {*self.topics, *(topic for topic, _ in self.partitions)}

    def names(self, partition: Partition) -> bool:
        """Whether this is about the partition, be it there or not."""
        if self.partitions:
            return partition in self.partitions
        if self.pattern is not None:
            return re.fullmatch(self.pattern, partition[0]) is not None
        return partition[0] in self.topics

    def select(self, known: Mapping[str, list[int]]) -> list[Partition]:
        """The partitions of `known` topics that are subscribed to."""
        if self.partitions:
            for topic, number in self.partitions:
                if number not in known.get(topic, ()):
                    raise SourceMissingError(f"there is no topic {topic} with a partition {number}")
            return sorted(self.partitions)
        if self.pattern is not None:
            pattern = re.compile(self.pattern)
            topics = [name for name in known if pattern.fullmatch(name)]
        else:
            for topic in self.topics:
                if topic not in known:
                    raise SourceMissingError(f"there is no topic {topic}")
            topics = list(self.topics)
        return sorted((topic, number) for topic in topics for number in known[topic])


def _ask_why(admin: Any, topics: Iterable[str]) -> None:
    """SourceError if the broker shows a topic only to others, which it does not say in a list."""
    kafka = need_client()
    asked = kafka.TopicCollection(sorted(topics))
    for topic, future in admin.describe_topics(asked, request_timeout=ASK_SECONDS).items():
        # The request has a timeout of its own.
        error = future.exception()
        if (
            isinstance(error, kafka.KafkaException)
            and error.args[0].code() != kafka.KafkaError.UNKNOWN_TOPIC_OR_PART
        ):
            raise failure(f"Kafka does not show topic {topic}", error, topic) from error


def owner(partition: Partition, parallelism: int) -> int:
    """The reader of a partition: those of a topic go round, from a start that its name gives."""
    topic, number = partition
    return (sum(topic.encode()) * 31 + number) % parallelism


def split_of(
    partition: Partition, offset: int, stop: int | None, topic_id: str | None = None
) -> dict[str, Any]:
    """A split: a partition, the next offset to read, and the first not to read, if there is one.

    The id tells the topic from another of the same name; splits of older versions have none.
    """
    place = {"topic": partition[0], "partition": partition[1], "id": topic_id}
    return {**place, "offset": offset, "stop": stop}
