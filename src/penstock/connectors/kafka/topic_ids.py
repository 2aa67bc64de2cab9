"""Which topic is read: one that is deleted and made anew has the same name and another id.

Positions in the old topic mean nothing in the new one: reading would go on there behind records
that nobody has read. So the ids of topics are kept with the positions, and compared.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from penstock.connectors.kafka.offsets import ASK_SECONDS
from penstock.connectors.kafka.settings import log, logged, need_client
from penstock.errors import SourceError, SourceMissingError, SourceRefusedError

AskIds = Callable[[Iterable[str]], Mapping[str, str]]
"""From names of topics to the ids of those that are there."""


_NO_ID = "A" * 22
"""What brokers before Kafka 2.8 tell: zero, as it is printed."""


class TopicIds:
    """The ids of the topics of a source, which its enumerator keeps."""

    def __init__(self, ask: AskIds, accepts: bool = False) -> None:
        self.ask = ask
        """The ids that topics have now; slow."""
        self._accepts = accepts
        """Whether a topic that was made anew is read from its beginning."""
        self.known: dict[str, str] = {}

    def compare(self, ids: Mapping[str, str], running: bool) -> None:
        """Note the ids of topics that are new; SourceError if a known one has another id.

        An attempt that is `running` has positions in the old topic: it ends in either case. One
        that was restored with them could only end again, unless new topics are accepted.
        """
        for topic, found in ids.items():
            known = self.known.setdefault(topic, found)
            if known == found:
                continue
            what = f"topic {topic} was deleted and made anew: its id was {known} and is {found}"
            if not self._accepts:
                # A job without checkpoints begins anew with the next attempt.
                kind = SourceMissingError if running else SourceRefusedError
                raise kind(
                    f"{what}; positions in the old one mean nothing in the new one: start anew "
                    "without the checkpoint, or let the source read_recreated_topics()"
                )
            if running:
                raise SourceMissingError(f"{what}; the next attempt reads it from its beginning")
            log.warning("%s; it is read from its beginning", what)
            self.known[topic] = found


def ids_of_cluster(properties: Mapping[str, str], topics: Iterable[str]) -> dict[str, str]:
    """The ids of those of `topics` that are there; none if the cluster does not tell ids."""
    kafka = need_client()
    from confluent_kafka.admin import AdminClient

    admin = AdminClient(logged(properties))
    try:
        metadata = admin.list_topics(timeout=ASK_SECONDS)
        there = sorted(metadata.topics.keys() & set(topics))
        # Without a controller, which a cluster may lack for a moment, nobody answers.
        if not there or metadata.controller_id not in metadata.brokers:
            return {}
        asked = kafka.TopicCollection(there)
        futures = admin.describe_topics(asked, request_timeout=ASK_SECONDS)
    except kafka.KafkaException as error:
        raise SourceError(f"Kafka does not tell the ids of topics: {error}") from error
    # A topic that is just being deleted has none.
    found = {topic: f.result().topic_id for topic, f in futures.items() if f.exception() is None}
    ids = {topic: _readable(topic_id) for topic, topic_id in found.items()}
    return {topic: topic_id for topic, topic_id in ids.items() if topic_id != _NO_ID}


def _readable(topic_id: Any) -> str:
    """An id as Kafka's own tools print it."""
    return str(topic_id).replace("+", "-").replace("/", "_")
