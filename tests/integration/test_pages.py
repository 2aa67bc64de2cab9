"""The programs in the pages on Kafka and PostgreSQL run as they stand, but for the addresses."""

from __future__ import annotations

import json
import re
from pathlib import Path

import psycopg
import pytest
from kafka_parts import read_all, write

from penstock.testing.kafka import KafkaBroker
from penstock.testing.postgres import PostgresServer

pytestmark = pytest.mark.full("Kafka")

DOCS = Path(__file__).resolve().parents[2] / "docs"


def run(page: str, written: str, real: str) -> None:
    [code] = re.findall(r"^```py\n(.*?)^```", (DOCS / page).read_text(), re.MULTILINE | re.DOTALL)
    assert written in code
    exec(compile(code.replace(written, real), page, "exec"), {"__name__": "__main__"})


@pytest.mark.usefixtures("session")
def test_kafka(broker: KafkaBroker) -> None:
    broker.create_topic("payments", 3)
    broker.create_topic("totals", 1)
    payments = [{"merchant": "tea", "amount": n} for n in range(1, 5)]
    write(broker, "payments", [json.dumps(payment) for payment in payments], partition=1)
    run("kafka.md", "localhost:9092", broker.bootstrap_servers)
    found = [json.loads(message.value()) for message in read_all(broker, "totals")]
    assert found == [["tea", 1], ["tea", 3], ["tea", 6], ["tea", 10]]


@pytest.mark.usefixtures("session")
def test_postgresql(postgres: PostgresServer) -> None:
    with psycopg.connect(postgres.url, autocommit=True) as connection:
        connection.execute("CREATE TABLE payments (item text, amount int)")
        connection.execute("CREATE TABLE totals (item text PRIMARY KEY, total int)")
        address = postgres.url.partition("@")[2]
        run("postgresql.md", "localhost:5432/postgres", address)
        assert connection.execute("SELECT count(*), sum(amount) FROM payments").fetchone() == (
            3,
            10,
        )
        found = connection.execute("SELECT * FROM totals ORDER BY item").fetchall()
        assert found == [("coffee", 3), ("tea", 7)]
