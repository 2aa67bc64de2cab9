"""The Kafka sink: plain, or in transactions that checkpoints commit."""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from dataclasses import dataclass

from penstock.connectors.delivery import DeliveryGuarantee
from penstock.connectors.kafka.committer import KafkaCommitter
from penstock.connectors.kafka.coordinator import Coordinators
from penstock.connectors.kafka.messages import MessageSchema
from penstock.connectors.kafka.plain_writer import PlainKafkaWriter
from penstock.connectors.kafka.pool import ProducerPool
from penstock.connectors.kafka.settings import log, number_of
from penstock.connectors.kafka.transactional_writer import TransactionalKafkaWriter
from penstock.connectors.kafka.transactions import MARGIN_MS, id_of, timeout_of_turn
from penstock.connectors.sink import Committer, CommitterContext, Sink, SinkWriter, WriterContext
from penstock.errors import ProgramError

TRANSACTION_TIMEOUT_MS = 15 * 60 * 1000
"""The longest that a broker allows unless it is configured otherwise."""
SHORTEST_TIMEOUT_MS = 10_000

# The user's properties go over these.
_PRODUCER_DEFAULTS = {"linger.ms": "5", "compression.type": "none"}
_MOST_IN_FLIGHT = 5
"""Requests that an idempotent producer may have under way."""


@dataclass(frozen=True)
class KafkaSinkSettings:
    """All that a builder gathers."""

    properties: Mapping[str, str]
    messages: MessageSchema
    guarantee: DeliveryGuarantee
    prefix: str = ""
    transaction_timeout_ms: int = TRANSACTION_TIMEOUT_MS
    flush_seconds: float = 120.0


class TopicSink(Sink):
    """Writes records to Kafka topics."""

    def __init__(self, settings: KafkaSinkSettings) -> None:
        self._settings = settings
        self.timed = settings.messages.timestamp is None

    def create_writer(self, context: WriterContext) -> SinkWriter:
        settings = self._settings
        properties = {**_PRODUCER_DEFAULTS, **settings.properties}
        message = settings.messages.compiled()
        if settings.guarantee is not DeliveryGuarantee.EXACTLY_ONCE:
            properties = {**ordering(properties), **properties}
            waits = settings.guarantee is DeliveryGuarantee.AT_LEAST_ONCE
            return PlainKafkaWriter(
                properties, message, waits, settings.flush_seconds, context.wake
            )
        writer = f"{context.attempt}-{context.subtask}-{uuid.uuid4().hex[:8]}"
        coordinators = Coordinators(settings.properties)
        pool = ProducerPool(
            properties,
            lambda number: id_of(settings.prefix, context.job_id, writer, number),
            settings.transaction_timeout_ms,
            coordinators,
            context.wake,
        )
        return TransactionalKafkaWriter(
            pool, coordinators, message, settings.flush_seconds, context.wake, context.clock
        )

    def create_committer(self, context: CommitterContext) -> Committer | None:
        settings = self._settings
        if settings.guarantee is not DeliveryGuarantee.EXACTLY_ONCE:
            return None
        _check_timeout(settings.transaction_timeout_ms, context)
        coordinators = Coordinators(settings.properties)
        return KafkaCommitter(settings.prefix, context.job_id, coordinators, context.last_attempt)


def ordering(properties: Mapping[str, str]) -> dict[str, str]:
    """What keeps the messages of a plain writer in order.

    Without idempotence the client may write the first messages of a topic that it does not know
    yet, or messages that are sent again, behind later ones. As in the Java client, idempotence is
    off when the user set something that excludes it.
    """

    def said(*names: str) -> str | None:
        return next((properties[name] for name in names if name in properties), None)

    acks = said("acks", "request.required.acks")
    in_flight = said("max.in.flight", "max.in.flight.requests.per.connection")
    retries = said("retries", "message.send.max.retries")
    possible = (
        acks in (None, "all", "-1")
        and retries != "0"
        and (in_flight is None or number_of("max.in.flight", in_flight) <= _MOST_IN_FLIGHT)
    )
    return {"enable.idempotence": "true"} if possible else {}


def _check_timeout(timeout_ms: int, context: CommitterContext) -> None:
    """ProgramError if brokers would abort transactions before a checkpoint can commit them.

    A warning if they would do so before a checkpoint that takes long.
    """
    interval, longest = context.checkpoint_interval_ms, context.checkpoint_timeout_ms
    if interval is None:
        return
    if timeout_of_turn(timeout_ms, 0) <= interval:
        raise ProgramError(
            f"the sink with uid {context.uid}: transaction.timeout.ms is {timeout_ms} ms and "
            f"checkpoints come every {interval} ms, so that brokers would abort transactions "
            "before they are committed; set it to the interval and the longest time that the job "
            "may be away, together"
        )
    if longest is not None and timeout_of_turn(timeout_ms, 0) < interval + longest:
        log.warning(
            "the sink with uid %s: transaction.timeout.ms is %d ms, and checkpoints come every %d "
            "ms and may take %d ms: brokers would abort transactions of a slow checkpoint before "
            "they are committed; set it to %d ms or more, or execution.checkpointing.timeout lower",
            *(context.uid, timeout_ms, interval, longest, interval + longest + MARGIN_MS),
        )
