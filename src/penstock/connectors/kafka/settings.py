"""The settings of Kafka clients: the user's properties, checked, with what every client needs."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from importlib import import_module
from typing import Any

from penstock.connectors.kafka.client_log import OncePerMinute
from penstock.errors import ProgramError

log = logging.getLogger("penstock.kafka")
_client_log = logging.getLogger("penstock.kafka.client")
_client_log.addFilter(OncePerMinute())

Properties = Mapping[str, str]

# Settings of the Java client that mean nothing to librdkafka, and what to write instead.
_JAVA_ONLY = {
    "sasl.jaas.config": "sasl.username and sasl.password",
    "ssl.truststore.location": "ssl.ca.location, a PEM file",
    "ssl.truststore.password": "ssl.ca.location, a PEM file",
    "key.deserializer": "a deserializer of the source",
    "value.deserializer": "a deserializer of the source",
    "key.serializer": "a serializer of the sink",
    "value.serializer": "a serializer of the sink",
}


def check_property(key: str, value: Any) -> str:
    """The value as a client takes it; ProgramError for what it would not understand."""
    if not isinstance(key, str) or not key:
        raise ProgramError(f"a Kafka property has a name, not {key!r}")
    if key in _JAVA_ONLY:
        raise ProgramError(
            f"the Kafka property {key} is the Java client's; use {_JAVA_ONLY[key]} instead"
        )
    if key in ("bootstrap.servers", "metadata.broker.list"):
        return _addresses(key, value)
    if isinstance(value, bool):
        return str(value).lower()
    if not isinstance(value, (str, int, float)):
        raise ProgramError(f"the Kafka property {key} is a {type(value).__name__}, not a string")
    return str(value)


def _addresses(key: str, value: Any) -> str:
    """Servers, each with a port, as the Java client wants them too."""
    if not isinstance(value, str):
        raise ProgramError(f"the Kafka property {key} is a {type(value).__name__}, not a string")
    for server in value.split(","):
        host, _, port = server.strip().rpartition(":")
        if not host or not port.isdigit():
            raise ProgramError(
                f"the Kafka property {key} names {server.strip()!r}, which is not host:port; "
                "brokers usually listen at port 9092"
            )
    return value


def number_of(key: str, value: str) -> int:
    """The value of a property that is a number."""
    try:
        return int(value)
    except ValueError:
        raise ProgramError(f"the Kafka property {key} is a number, not {value!r}") from None


def need_client() -> Any:
    """The module confluent_kafka, or an error that says how to get it."""
    try:
        return import_module("confluent_kafka")
    except ImportError as error:
        raise ProgramError(
            "Kafka needs the package confluent-kafka: pip install 'penstock[kafka]'"
        ) from error


def logged(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Settings of a client whose own messages go to the log `penstock.kafka.client`."""
    return {"logger": _client_log, **settings}
