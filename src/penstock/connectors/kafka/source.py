"""The Kafka source: partitions as splits, offsets as positions."""

from __future__ import annotations

import functools
import uuid
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from penstock.common.plain import Plain
from penstock.connectors.kafka.enumerator import KafkaEnumerator
from penstock.connectors.kafka.fetcher import Fetcher
from penstock.connectors.kafka.offsets import EARLIEST, OffsetRule, OffsetsOfCluster, Partition
from penstock.connectors.kafka.partitions import Subscription, split_of
from penstock.connectors.kafka.reader import KafkaReader
from penstock.connectors.kafka.records import BadRecords, Decoder, ValueDecoder
from penstock.connectors.kafka.topic_ids import TopicIds, ids_of_cluster
from penstock.connectors.source import (
    EnumeratorContext,
    ReaderContext,
    Source,
    SourceReader,
    SplitEnumerator,
)
from penstock.errors import SourceMissingError

DISCOVERY_INTERVAL_MS = 5 * 60 * 1000

# The client's prefetch is bounded; the user's properties go over these.
CONSUMER_DEFAULTS = {
    "queued.max.messages.kbytes": "16384",
    "queued.min.messages": "20000",
    # How long the client stops fetching when so many wait. Its second is longer than they last.
    "fetch.queue.backoff.ms": "10",
    "fetch.wait.max.ms": "100",
    "auto.offset.reset": "error",
    # As the Java client does. Without, an altered record is a record like any other.
    "check.crcs": "true",
}
# What the engine relies on; the user's properties do not go over these.
CONSUMER_RULES = {
    "enable.auto.commit": "false",
    "enable.auto.offset.store": "false",
    "enable.partition.eof": "true",
    # A reader under back pressure does not ask for long, and is not dead.
    "max.poll.interval.ms": "86400000",
}


@dataclass(frozen=True)
class KafkaSourceSettings:
    """All that a builder gathers."""

    subscription: Subscription
    properties: Mapping[str, str]
    group: str | None = None
    start: OffsetRule = field(default_factory=lambda: OffsetRule(EARLIEST))
    stop: OffsetRule | None = None
    bounded: bool = False
    decoder: Decoder = field(default_factory=ValueDecoder)
    discovery_ms: int | None = DISCOVERY_INTERVAL_MS
    on_bad_record: BadRecords = BadRecords.FAIL
    commit_offsets: bool = True
    client_id_prefix: str | None = None
    read_recreated: bool = False

    @property
    def renews(self) -> bool:
        """Whether topics that were made anew are read from their beginning.

        Where reading was to stop is a place in the old topic.
        """
        return self.read_recreated and self.stop is None


class PartitionsSource(Source):
    """Reads partitions of Kafka topics."""

    timed = True

    def __init__(self, settings: KafkaSourceSettings) -> None:
        self._settings = settings
        self.keeps_bad_records = settings.on_bad_record is BadRecords.KEEP

    def create_enumerator(
        self, context: EnumeratorContext, restored: Plain | None
    ) -> SplitEnumerator:
        settings = self._settings
        interval = None if settings.bounded else settings.discovery_ms
        find = functools.partial(_new_splits, settings)
        ends = settings.bounded or settings.stop is not None
        ids = TopicIds(functools.partial(ids_of_cluster, settings.properties), settings.renews)
        interval = None if ends else interval
        return KafkaEnumerator(find, ids, context.parallelism, interval, restored)

    def create_reader(self, context: ReaderContext) -> SourceReader:
        settings = self._settings
        return KafkaReader(
            lambda: Fetcher(self._consumer_settings(context), context.wake),
            settings.decoder.compiled(),
            settings.on_bad_record,
            context.timed,
            settings.group is not None and settings.commit_offsets,
            context.metrics,
            functools.partial(_renewed, settings) if settings.renews else list,
        )

    def _consumer_settings(self, context: ReaderContext) -> dict[str, Any]:
        settings = self._settings
        chosen = {**CONSUMER_DEFAULTS, **settings.properties, **CONSUMER_RULES}
        # The client wants a group even where nobody commits offsets for one.
        chosen["group.id"] = settings.group or f"penstock-{uuid.uuid4().hex}"
        if settings.client_id_prefix is not None:
            chosen["client.id"] = f"{settings.client_id_prefix}-{context.subtask}"
        return chosen


def _new_splits(
    settings: KafkaSourceSettings, known: frozenset[Partition], first: bool
) -> list[dict[str, Any]]:
    """Splits of the partitions that are not known yet."""
    found = settings.subscription.find(settings.properties)
    for topic, number in sorted(filter(settings.subscription.names, known.difference(found))):
        raise SourceMissingError(f"topic {topic}, partition {number}: it is gone; was it deleted?")
    fresh = [partition for partition in found if partition not in known]
    offsets = OffsetsOfCluster(settings.properties, settings.group)
    starts = offsets.resolve(settings.start if first else OffsetRule(EARLIEST), fresh)
    stops: Mapping[Partition, int] = {}
    if settings.stop is not None:
        stops = offsets.stops(settings.stop, fresh)
    ids = ids_of_cluster(settings.properties, {topic for topic, _ in fresh}) if fresh else {}
    return [split_of(p, starts[p], stops.get(p), ids.get(p[0])) for p in fresh]


def _renewed(settings: KafkaSourceSettings, splits: list[Plain]) -> list[Plain]:
    """The splits; those of topics that were made anew begin anew."""
    ids = ids_of_cluster(settings.properties, {split["topic"] for split in splits})
    stale = [s for s in splits if s.get("id") not in (None, ids.get(s["topic"], s.get("id")))]
    places = [(split["topic"], split["partition"]) for split in stale]
    offsets = OffsetsOfCluster(settings.properties, settings.group)
    starts = offsets.resolve(OffsetRule(EARLIEST), places)
    anew = [split_of(place, starts[place], None, ids[place[0]]) for place in places]
    return [*(split for split in splits if split not in stale), *anew]
