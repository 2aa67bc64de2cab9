"""Properties of Kafka clients that are refused before a client sees them."""

from __future__ import annotations

import pytest

from penstock.connectors.kafka.settings import check_property
from penstock.datastream.connectors.kafka import KafkaSink, KafkaSource
from penstock.errors import ProgramError


@pytest.mark.parametrize("builder", [KafkaSource.builder, KafkaSink.builder])
@pytest.mark.parametrize(
    ("servers", "wrong"),
    [
        ("localhost", "localhost"),
        ("one:9092, two", "two"),
        ("one:9092,", ""),
        ("one:port", "one:port"),
        (":9092", ":9092"),
        ("PLAINTEXT://one", "PLAINTEXT://one"),
        ("[::1]", "[::1]"),
    ],
)
def test_a_server_without_a_port_is_named(builder: type, servers: str, wrong: str) -> None:
    with pytest.raises(ProgramError, match="host:port") as caught:
        builder().set_bootstrap_servers(servers)
    assert f"{wrong!r}, which is not" in str(caught.value)


@pytest.mark.parametrize(
    "servers",
    ["one:9092", "one:9092,two:9093", " one:9092 , two:9093 ", "SSL://one:9092", "[::1]:1"],
)
def test_servers_with_ports_are_taken_as_they_are(servers: str) -> None:
    assert check_property("bootstrap.servers", servers) == servers
