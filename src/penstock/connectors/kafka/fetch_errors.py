"""What the client reports among messages: troubles that pass, and what ends the attempt.

The client goes on by itself when a broker is away, a leader moves or an answer is late. All else
that it reports it cannot mend: it would ask for the same again for ever, and the source would
stand still without a word. Such an error ends the attempt, with the place where it came up.
"""

from __future__ import annotations

import functools
from typing import Any

from penstock.connectors.kafka.rights import reported
from penstock.connectors.kafka.settings import need_client
from penstock.errors import SourceError

# By their names in confluent_kafka.KafkaError.
_PASSING = (
    # Of the connection.
    "_ALL_BROKERS_DOWN",
    "_FAIL",
    "_RESOLVE",
    "_SSL",
    "_TIMED_OUT",
    "_TIMED_OUT_QUEUE",
    "_TRANSPORT",
    "_UNKNOWN_BROKER",
    "BROKER_NOT_AVAILABLE",
    "NETWORK_EXCEPTION",
    "REBOOTSTRAP_REQUIRED",
    "REQUEST_TIMED_OUT",
    "THROTTLING_QUOTA_EXCEEDED",
    "UNKNOWN",
    # Of leaders and coordinators that move, and replicas that catch up.
    "_WAIT_CACHE",
    "_WAIT_COORD",
    "COORDINATOR_LOAD_IN_PROGRESS",
    "COORDINATOR_NOT_AVAILABLE",
    "FENCED_LEADER_EPOCH",
    "FETCH_SESSION_ID_NOT_FOUND",
    "INVALID_FETCH_SESSION_EPOCH",
    "KAFKA_STORAGE_ERROR",
    "LEADER_NOT_AVAILABLE",
    "NOT_COORDINATOR",
    "NOT_LEADER_FOR_PARTITION",
    "OFFSET_NOT_AVAILABLE",
    "REPLICA_NOT_AVAILABLE",
    "UNKNOWN_LEADER_EPOCH",
)
_DAMAGE = ("_BAD_COMPRESSION", "_BAD_MSG", "INVALID_MSG", "INVALID_RECORD")


def passes(error: Any) -> bool:
    """Whether the client goes on by itself after this error."""
    return not error.fatal() and error.code() in _codes(_PASSING)


def ends_the_attempt(error: Any, message: Any, group: str) -> SourceError:
    """The error as the user reads it; `message` is what the client reported it with."""
    topic, partition, offset = message.topic(), message.partition(), message.offset()
    where = "reading from Kafka failed"
    if topic is not None:
        where = f"topic {topic}"
        where += f", partition {partition}" if partition is not None and partition >= 0 else ""
        where += f", offset {offset}" if offset is not None and offset >= 0 else ""
    if error.code() == need_client().KafkaError._AUTO_OFFSET_RESET:
        return SourceError(
            f"{where}: it is not there any more or not yet ({error.str()}); was it deleted by "
            "retention, or the topic made anew?"
        )
    if error.code() in _codes(_DAMAGE):
        return SourceError(
            f"{where}: the batch that begins there is damaged in the broker's log ({error.str()}); "
            "another replica may have it whole, else reading must begin behind it"
        )
    return reported(where, error, topic, group)


@functools.cache
def _codes(names: tuple[str, ...]) -> frozenset[int]:
    """The codes of errors that the installed client knows."""
    errors = need_client().KafkaError
    return frozenset(getattr(errors, name) for name in names if hasattr(errors, name))
