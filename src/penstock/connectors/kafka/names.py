"""Kafka servers that a program names, and where they are reached instead.

A program has the names of the place that it was written for. The configuration says what they are
elsewhere, so that the program is not edited. Only names in `bootstrap.servers` are looked up:
behind them a cluster tells its clients by itself where its brokers are.

>>> servers = {"kafka.shop.internal:9092": "localhost:19092"}
>>> reached("kafka.shop.internal:9092,b:9092", servers)
'localhost:19092,b:9092'
"""

from __future__ import annotations

import copy
from collections.abc import Mapping
from dataclasses import replace

from penstock.connectors.hybrid import SourcesInTurn
from penstock.connectors.kafka.sink import TopicSink
from penstock.connectors.kafka.source import PartitionsSource
from penstock.connectors.sink import Sink
from penstock.connectors.source import Source

_KEYS = ("bootstrap.servers", "metadata.broker.list")


def reached(named: str, servers: Mapping[str, str]) -> str:
    """The servers in `named`, each where it is reached."""
    return ",".join(servers.get(one.strip(), one.strip()) for one in named.split(","))


def relocated_source(source: Source, servers: Mapping[str, str]) -> Source:
    """The same source, with its servers where they are reached; one of another kind as it is."""
    if isinstance(source, SourcesInTurn):
        several = copy.copy(source)
        several._sources = tuple(relocated_source(one, servers) for one in source._sources)
        return several
    if not isinstance(source, PartitionsSource):
        return source
    moved = copy.copy(source)
    properties = _relocated(source._settings.properties, servers)
    moved._settings = replace(source._settings, properties=properties)
    return moved


def relocated_sink(sink: Sink, servers: Mapping[str, str]) -> Sink:
    """The same for a sink."""
    if not isinstance(sink, TopicSink):
        return sink
    moved = copy.copy(sink)
    properties = _relocated(sink._settings.properties, servers)
    moved._settings = replace(sink._settings, properties=properties)
    return moved


def _relocated(properties: Mapping[str, str], servers: Mapping[str, str]) -> dict[str, str]:
    return {
        key: reached(value, servers) if key in _KEYS else value for key, value in properties.items()
    }
