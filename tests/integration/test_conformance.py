"""Our own connectors, put through the suite that everybody's can be put through."""

from __future__ import annotations

from collections.abc import Callable

import psycopg
import pytest
from kafka_parts import exactly_once, read_all, source, values, write
from numbers_driver import jdbc

from penstock.datastream.connectors.jdbc import JdbcSink
from penstock.testing.conformance import check_bounded_source, check_transactional_sink
from penstock.testing.kafka import KafkaBroker
from penstock.testing.postgres import PostgresServer

pytestmark = pytest.mark.full("Kafka")


def test_the_kafka_sink(broker: KafkaBroker, topic: Callable[..., str]) -> None:
    name = topic()
    check_transactional_sink(
        lambda: exactly_once(broker, name, name), lambda: values(read_all(broker, name)), "abc"
    )


def test_the_kafka_source(broker: KafkaBroker, topic: Callable[..., str]) -> None:
    name = topic(3)
    for number in range(3):
        write(broker, name, [f"{number}:{n}" for n in range(15)], partition=number)
    built = source(broker, name).set_bounded("latest").build()
    assert len(check_bounded_source(built, ordered=False)) == 45


def test_the_postgres_sink(postgres: PostgresServer) -> None:
    with psycopg.connect(postgres.url, autocommit=True) as connection:
        connection.execute("DROP TABLE IF EXISTS conformance")
        connection.execute("CREATE TABLE conformance (value text)")
        check_transactional_sink(
            lambda: JdbcSink.exactly_once_sink(
                "INSERT INTO conformance VALUES (?)", None, jdbc(postgres.url)
            ),
            lambda: [value for (value,) in connection.execute("SELECT * FROM conformance")],
            [("a",), ("b",), ("c",)],
            shown=lambda record: record[0],
        )
