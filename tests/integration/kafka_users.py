"""Users of a broker that gives nobody any rights but those that a test asks for."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from confluent_kafka.admin import (
    AclBinding,
    AclBindingFilter,
    AclPermissionType,
    AdminClient,
    ResourcePatternType,
    ResourceType,
)
from patience import until

from penstock.testing.kafka import KafkaBroker, Security, kafka_broker

LONGEST_MS = 30_000
"""The longest transaction timeout that the broker allows."""
USERS = {f"user{number}": "secret" for number in range(20)}
_names = iter(USERS)
_numbers = itertools.count(1)


@contextmanager
def guarded_broker() -> Iterator[KafkaBroker]:
    """Who does not log in may do all; who does needs rights."""
    settings = {
        "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
        "super.users": "User:ANONYMOUS",
        "transaction.max.timeout.ms": str(LONGEST_MS),
    }
    with kafka_broker(settings, Security(USERS)) as broker:
        yield broker


class User:
    """Somebody who logs in, and a topic for them."""

    def __init__(self, broker: KafkaBroker) -> None:
        self._broker = broker
        self.name = next(_names)
        self.topic = f"topic-{next(_numbers)}"
        self.bootstrap_servers = broker.secure_servers
        broker.create_topic(self.topic)

    def login(self) -> dict[str, str]:
        """Properties of a client."""
        return {
            "security.protocol": "SASL_PLAINTEXT",
            "sasl.mechanism": "PLAIN",
            "sasl.username": self.name,
            "sasl.password": USERS[self.name],
        }

    def may(self, kind: Any, name: str, *operations: Any) -> None:
        """Give rights, and wait until the broker knows them."""
        admin = AdminClient({"bootstrap.servers": self._broker.bootstrap_servers, "log_level": 0})
        pattern = ResourcePatternType.LITERAL
        if kind is ResourceType.TRANSACTIONAL_ID:
            pattern = ResourcePatternType.PREFIXED
        for operation in operations:
            right = (kind, name, pattern, f"User:{self.name}", "*", operation)
            [done] = admin.create_acls([AclBinding(*right, AclPermissionType.ALLOW)]).values()
            done.result(30)
            # The controller has it; the broker hears of it a little later.
            asked = AclBindingFilter(*right, AclPermissionType.ALLOW)
            until(lambda asked=asked: admin.describe_acls(asked).result(30), "the right")
