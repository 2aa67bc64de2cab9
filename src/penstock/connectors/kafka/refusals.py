"""What brokers refuse: their own reason, and what to ask for.

Some answers stay the same however often somebody asks: a right is missing, a record is larger than
its topic takes. They are a `SinkRefusedError`, after which a job is not restarted.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from penstock.connectors.kafka.settings import need_client
from penstock.errors import SinkError, SinkRefusedError

TOO_LARGE = 10
_TOPIC_RIGHT, _CLUSTER_RIGHT, _ID_RIGHT = 29, 31, 53
_TIMEOUT, _NOT_VALID = 50, 87
_FINAL = frozenset({TOO_LARGE, _TOPIC_RIGHT, _CLUSTER_RIGHT, _ID_RIGHT, _TIMEOUT, _NOT_VALID})

_ADVICE = {
    TOO_LARGE: "a sink sends up to message.max.bytes and a topic takes up to max.message.bytes: "
    "raise the lower one, or write smaller records",
    _TOPIC_RIGHT: "the user needs the right Write on the topic: kafka-acls --add "
    "--allow-principal User:... --operation Write --topic {name}",
    _CLUSTER_RIGHT: "the user needs the right Write on the topic, or IdempotentWrite on the "
    "cluster: kafka-acls --add --allow-principal User:... --operation IdempotentWrite --cluster",
    _ID_RIGHT: "the user needs the rights Describe and Write on transactional ids that begin with "
    "{name}/: kafka-acls --add --allow-principal User:... --operation Describe --operation Write "
    "--transactional-id {name}/ --resource-pattern-type prefixed",
    _TIMEOUT: "the broker's transaction.max.timeout.ms is below the transaction.timeout.ms of the "
    "sink: lower this one, or have that one raised",
}


_PURGED = ("_PURGE_QUEUE", "_PURGE_INFLIGHT")


@dataclass(frozen=True)
class Refused:
    """Messages that were not delivered, for one reason: how many, and the largest of them."""

    topic: str
    partition: int | None
    """None: it was not chosen yet."""
    size: int
    """Of key and value, in bytes."""
    code: int
    reason: str
    purged: bool
    """The client gave the message up because of another one, or of its transaction."""
    count: int = 1

    @staticmethod
    def of(error: Any, message: Any) -> Refused:
        """As a delivery report tells it."""
        return Refused(
            message.topic(),
            message.partition(),
            len(message.key() or b"") + len(message.value() or b""),
            error.code(),
            error.str(),
            error.name() in _PURGED,
        )

    def joined(self, other: Refused) -> Refused:
        """With one more; what the client gave up because of others tells nothing."""
        if self.code != other.code:
            return other if self.purged else self
        larger = other if other.size > self.size else self
        return replace(larger, count=self.count + 1)

    def because(self, error: Any) -> Refused:
        """The same, for the reason that the client gives for it."""
        return replace(self, code=error.code(), reason=error.str())

    def error(self) -> SinkError:
        where = f"topic {self.topic}"
        if self.partition is not None:
            where += f", partition {self.partition}"
        what = f"{where}: {self._messages()} not delivered: {self.reason}"
        if self.code == TOO_LARGE and self.count > 1:
            # It may be that only together they are too large, and another time they are not.
            return SinkError(
                f"{what}; the topic takes batches of max.message.bytes: have that raised, set "
                "batch.size of the sink below it, or write smaller records"
            )
        return refusal(self.code, what, self.topic)

    def _messages(self) -> str:
        one = f"a message of {self.size} bytes"
        return f"{one} was" if self.count == 1 else f"{one} and {self.count - 1} smaller ones were"


def reason_of(code: int) -> str:
    """What an error code of a broker means, in the client library's words."""
    return f"{need_client().KafkaError(code).str()} (error {code})"


def refusal(code: int | None, what: str, name: str = "NAME") -> SinkError:
    """The error for an answer of a broker: `what` tells it, `name` is a topic or an id's prefix."""
    text = what
    if code in _ADVICE:
        text = f"{what}; {_ADVICE[code].format(name=name)}"
    return SinkRefusedError(text) if code in _FINAL else SinkError(text)


def code_of(error: BaseException) -> int | None:
    """The code in an exception of the client library, if there is one."""
    reason: Any = error.args[0] if error.args else None
    return int(reason.code()) if hasattr(reason, "code") else None
