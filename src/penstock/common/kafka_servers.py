"""Where the Kafka servers that a program names are reached: a value of the configuration.

>>> parse_servers("kafka.shop.internal:9092=localhost:19092, b:9092=localhost:29092")
{'kafka.shop.internal:9092': 'localhost:19092', 'b:9092': 'localhost:29092'}
"""

from __future__ import annotations

import re

_SERVER = re.compile(r"[^\s=]+:\d+")


def parse_servers(text: str) -> dict[str, str]:
    """Pairs `named=reached` with commas between them; both are host and port."""
    servers: dict[str, str] = {}
    for pair in (pair.strip() for pair in str(text).split(",") if pair.strip()):
        named, _, reached = (part.strip() for part in pair.partition("="))
        if not _SERVER.fullmatch(named) or not _SERVER.fullmatch(reached):
            raise ValueError("expected pairs such as kafka.internal:9092=localhost:19092")
        if servers.setdefault(named, reached) != reached:
            raise ValueError(f"{named} has two places: {servers[named]} and {reached}")
    return servers
