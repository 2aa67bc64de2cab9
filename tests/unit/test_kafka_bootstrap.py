"""The servers that a user names."""

from __future__ import annotations

import pytest

from penstock.connectors.kafka.brokers import bootstrap


@pytest.mark.parametrize(
    ("servers", "expected"),
    [
        ("one:1", [("one", 1)]),
        ("one:1, two:2", [("one", 1), ("two", 2)]),
        ("PLAINTEXT://one:1", [("one", 1)]),
        ("[::1]:1", [("::1", 1)]),
    ],
)
def test_a_server_is_a_host_and_a_port(servers: str, expected: list[tuple[str, int]]) -> None:
    assert bootstrap({"bootstrap.servers": servers}) == expected
