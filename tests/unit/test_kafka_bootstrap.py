"""The servers that a user names."""

from __future__ import annotations

import pytest

from penstock.connectors.kafka.brokers import bootstrap
from penstock.errors import ProgramError


@pytest.mark.parametrize(
    ("servers", "expected"),
    [
        ("one:1", [("one", 1)]),
        ("one:1, two:2", [("one", 1), ("two", 2)]),
        ("PLAINTEXT://one:1", [("one", 1)]),
        ("one", [("one", 9092)]),
        ("[::1]:1", [("::1", 1)]),
        ("[::1]", [("::1", 9092)]),
    ],
)
def test_a_server_is_a_host_and_a_port_which_may_be_left_out(
    servers: str, expected: list[tuple[str, int]]
) -> None:
    assert bootstrap({"bootstrap.servers": servers}) == expected


@pytest.mark.parametrize("servers", ["one:x", "one:1,", ":1", ""])
def test_what_is_no_server_is_named(servers: str) -> None:
    with pytest.raises(ProgramError, match=r"bootstrap\.servers names .*, which is no server"):
        bootstrap({"bootstrap.servers": servers})
