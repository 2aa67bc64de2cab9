"""Where reading starts and where it stops: rules, and what they mean for partitions that exist.

A rule is plain data. `resolve` turns it into one number per partition by asking the cluster.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from penstock.connectors.kafka.fetch_errors import passes
from penstock.connectors.kafka.rights import failure
from penstock.connectors.kafka.settings import logged, need_client
from penstock.errors import ProgramError, SourceError

ASK_SECONDS = 30.0
_ASK_AGAIN_SECONDS = 1.0

Partition = tuple[str, int]
"""A topic and the number of a partition of it."""

EARLIEST, LATEST, NONE = "earliest", "latest", "none"
RESETS = (EARLIEST, LATEST, NONE)


@dataclass(frozen=True)
class OffsetRule:
    """Offsets of partitions: `kind` is earliest, latest, committed, timestamp or explicit."""

    kind: str
    timestamp_ms: int = 0
    offsets: Mapping[Partition, int] = field(default_factory=dict)
    reset: str = EARLIEST
    """What is taken where there is no offset, or one that the partition does not have."""

    @staticmethod
    def of(text: str) -> OffsetRule:
        """The rule of a string: earliest, latest, committed, or a timestamp in milliseconds."""
        kind = (
            text.strip().lower().replace("_", "-").removesuffix("-offset").removesuffix("-offsets")
        )
        if kind in (EARLIEST, LATEST):
            return OffsetRule(kind)
        if kind in ("committed", "group"):
            return OffsetRule("committed", reset=NONE)
        if kind.isdigit():
            return OffsetRule("timestamp", timestamp_ms=int(kind))
        raise ProgramError(
            f"{text!r} is no place in a topic; write 'earliest', 'latest', 'committed', or a "
            "timestamp in milliseconds"
        )


class OffsetsOfCluster:
    """Looks offsets up, for one source."""

    def __init__(self, properties: Mapping[str, str], group: str | None) -> None:
        self._properties = properties
        self._group = group

    def stops(self, rule: OffsetRule, partitions: Iterable[Partition]) -> dict[Partition, int]:
        """As `resolve`, for where reading stops: an explicit offset may lie in the future."""
        given = rule.offsets if rule.kind == "explicit" else {}
        rest = [partition for partition in partitions if partition not in given]
        return {**given, **self.resolve(rule, rest)}

    def resolve(self, rule: OffsetRule, partitions: Iterable[Partition]) -> dict[Partition, int]:
        """One offset for each of `partitions`; SourceError where there is none."""
        wanted = list(partitions)
        if not wanted:
            return {}
        if rule.kind in (EARLIEST, LATEST):
            return self._ends(rule.kind, wanted)
        if rule.kind == "timestamp":
            found = self._list(wanted, lambda spec: spec.for_timestamp(rule.timestamp_ms))
            missing = [partition for partition in wanted if found[partition] < 0]
            return {**found, **self._ends(LATEST, missing)}
        known = self._committed(wanted) if rule.kind == "committed" else dict(rule.offsets)
        return self._checked(rule, wanted, known)

    def _checked(
        self, rule: OffsetRule, wanted: list[Partition], known: dict[Partition, int]
    ) -> dict[Partition, int]:
        """The offsets that exist; for the others what the rule's reset says."""
        first, last = self._ends(EARLIEST, wanted), self._ends(LATEST, wanted)
        chosen = {}
        for partition in wanted:
            offset = known.get(partition)
            if offset is not None and first[partition] <= offset <= last[partition]:
                chosen[partition] = offset
            elif rule.reset == NONE:
                topic, number = partition
                what = "no offset" if offset is None else f"the offset {offset}"
                raise SourceError(
                    f"topic {topic}, partition {number}: reading should start at {what} "
                    f"({rule.kind}), and it holds {first[partition]} to {last[partition]}; choose "
                    "a reset strategy, earliest or latest"
                )
            else:
                chosen[partition] = (first if rule.reset == EARLIEST else last)[partition]
        return chosen

    def _ends(self, kind: str, partitions: list[Partition]) -> dict[Partition, int]:
        if kind == EARLIEST:
            return self._list(partitions, lambda spec: spec.earliest())
        return self._list(partitions, lambda spec: spec.latest())

    def _list(self, partitions: list[Partition], spec: Any) -> dict[Partition, int]:
        if not partitions:
            return {}
        kafka = need_client()
        from confluent_kafka.admin import AdminClient, OffsetSpec  # type: ignore[attr-defined]

        admin = AdminClient(logged(self._properties))
        asked = {kafka.TopicPartition(*partition): spec(OffsetSpec) for partition in partitions}
        committed = self._properties.get("isolation.level", "read_committed") == "read_committed"
        level = kafka.IsolationLevel.READ_COMMITTED if committed else None
        options = {"isolation_level": level} if level is not None else {}
        futures = admin.list_offsets(asked, request_timeout=ASK_SECONDS, **options)
        try:
            return {
                (place.topic, place.partition): int(future.result(ASK_SECONDS).offset)
                for place, future in futures.items()
            }
        except (kafka.KafkaException, TimeoutError) as error:
            names = ", ".join(sorted({topic for topic, _ in partitions}))
            what = f"Kafka does not say which offsets {names} has"
            raise failure(what, error, names, self._group) from error

    def _committed(self, partitions: list[Partition]) -> dict[Partition, int]:
        """What the group has committed, asked as a member of it would ask.

        The admin client has a call for this that ends the process when the coordinator of the group
        has moved or just begun (librdkafka 2.16: it follows a pointer that only consumers set).
        """
        if self._group is None:
            raise ProgramError("committed offsets are those of a group: set_group_id() names it")
        kafka = need_client()
        own = {"group.id": self._group, "enable.auto.commit": "false"}
        consumer = kafka.Consumer({**logged(self._properties), **own})
        try:
            places = [kafka.TopicPartition(*partition) for partition in partitions]
            found = self._ask_group(consumer, places)
        except kafka.KafkaException as error:
            what = f"Kafka does not say what group {self._group} committed"
            raise failure(what, error, None, self._group) from error
        finally:
            consumer.close()
        return {(f.topic, f.partition): int(f.offset) for f in found if f.offset >= 0}

    @staticmethod
    def _ask_group(consumer: Any, places: list[Any]) -> list[Any]:
        """The answer of the group's coordinator, which is waited for."""
        kafka = need_client()
        deadline = time.monotonic() + ASK_SECONDS
        while True:
            try:
                found: list[Any] = consumer.committed(places, timeout=_ASK_AGAIN_SECONDS)
                for place in found:
                    if place.error is not None:
                        raise kafka.KafkaException(place.error)
                return found
            except kafka.KafkaException as error:
                # That the group is not for this user comes apart from the answer, if ever.
                news = consumer.poll(0)
                problem = error.args[0] if news is None or news.error() is None else news.error()
                if not passes(problem) or time.monotonic() >= deadline:
                    raise kafka.KafkaException(problem) from error
