"""Exactly once, end to end, on real Spark, while slots and servers are killed."""

from __future__ import annotations

import os
import random
import signal
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest
from confluent_kafka import Producer
from job_parts import Count, environment, running, slot_pids
from kafka_parts import read_all, source, until, values
from test_kafka_sink import exactly_once

from penstock.common import WatermarkStrategy
from penstock.datastream.connectors.jdbc import JdbcConnectionOptions, JdbcSink
from penstock.datastream.connectors.kafka import (
    KafkaOffsetsInitializer,
    KafkaRecordSerializationSchema,
    KafkaTopicPartition,
)
from penstock.datastream.connectors.number_seq import NumberSequenceSource
from penstock.testing.kafka import KafkaBroker
from penstock.testing.postgres import PostgresServer

SEED = 7
PARTITIONS, KEYS = 3, 30
Topic = Callable[..., str]


class Feeder(threading.Thread):
    """Writes the numbers below `count`, by their remainder to partitions, at a rate."""

    def __init__(self, broker: KafkaBroker, topic: str, count: int, rate: int) -> None:
        super().__init__(daemon=True)
        # Retries after a kill of the broker must not write twice, or in another order.
        settings = {"enable.idempotence": True, "linger.ms": 1, "log_level": 0}
        servers = {"bootstrap.servers": broker.bootstrap_servers}
        self._producer = Producer({**servers, **settings})
        self._topic, self._count, self._rate = topic, count, rate
        self.hurry = threading.Event()

    def run(self) -> None:
        for number in range(self._count):
            self._producer.produce(self._topic, str(number), partition=number % PARTITIONS)
            self._producer.poll(0)
            if number % 20 == 0 and not self.hurry.is_set():
                # Ever slower, so that there is something to read until everything was killed.
                time.sleep(20 / self._rate / (1 - number / self._count))
        assert self._producer.flush(60) == 0


def key_of(number: int) -> int:
    return number % KEYS


def jdbc(server: PostgresServer) -> JdbcConnectionOptions:
    return JdbcConnectionOptions.JdbcConnectionOptionsBuilder().with_url(server.url).build()


@pytest.mark.slow
@pytest.mark.timeout(900)
@pytest.mark.usefixtures("session")
def test_every_number_once_and_in_order_whatever_is_killed(
    broker: KafkaBroker,
    postgres: PostgresServer,
    topic: Topic,
    tmp_path: Path,
    request: pytest.FixtureRequest,
) -> None:
    long = request.config.getoption("--long")
    count = 100_000 if long else 20_000
    victims = ["slot", "broker", "slot", "slot", "database", "slot"] * (4 if long else 1)
    numbers, out = topic(PARTITIONS), topic(PARTITIONS)
    with psycopg.connect(postgres.url, autocommit=True) as connection:
        connection.execute("DROP TABLE IF EXISTS counted")
        connection.execute("CREATE TABLE counted (id bigserial, k int, c int, n int)")

    env = environment(2, tmp_path / "checkpoints", "300 ms")
    ends = {
        KafkaTopicPartition(numbers, n): len(range(n, count, PARTITIONS)) for n in range(PARTITIONS)
    }
    built = source(broker, numbers).set_group_id(out)
    built = built.set_bounded(KafkaOffsetsInitializer.offsets(ends)).build()
    stream = env.from_source(built, WatermarkStrategy.no_watermarks(), "numbers")
    counted = stream.map(int).key_by(key_of).process(Count())
    # A broker that is away for longer than this fails deliveries, not just delays them.
    schema = KafkaRecordSerializationSchema.builder().set_topic(out)
    schema.set_partitioner(lambda record, key: int(record.split()[0]) % PARTITIONS)
    to_kafka = exactly_once(broker, schema.build(), out, message_timeout_ms="4000")
    counted.map(lambda one: f"{one[0]} {one[1]} {one[2]}").sink_to(to_kafka).uid("kafka")
    sql = "INSERT INTO counted (k, c, n) VALUES (?, ?, ?)"
    counted.sink_to(JdbcSink.exactly_once_sink(sql, None, jdbc(postgres))).uid("postgres")

    feeder = Feeder(broker, numbers, count, rate=500)
    feeder.start()
    job = env.execute_async("numbers")
    chance = random.Random(SEED)
    now = running(job, checkpoints=1)
    for victim in victims:
        time.sleep(chance.random())
        if victim == "slot":
            os.kill(chance.choice(slot_pids(now)), signal.SIGKILL)
            now = running(job, attempt=now.attempt + 1, checkpoints=now.completed_checkpoints + 1)
        else:
            server: Any = broker if victim == "broker" else postgres
            server.kill()
            time.sleep(5 * chance.random())
            server.start()
            now = running(job, now.attempt, checkpoints=now.completed_checkpoints + 2)
    feeder.hurry.set()
    job.get_job_execution_result().result(timeout=240)
    feeder.join()

    expected = {(key, n // KEYS + 1, n) for n in range(count) for key in [key_of(n)]}
    seen = [tuple(map(int, value.split())) for value in values(read_all(broker, out))]
    check(seen, expected)
    with psycopg.connect(postgres.url) as connection:
        check(connection.execute("SELECT k, c, n FROM counted ORDER BY id").fetchall(), expected)
        assert connection.execute("SELECT * FROM pg_prepared_xacts").fetchall() == []


def check(seen: list[Any], expected: set[Any]) -> None:
    assert len(seen) == len(expected), f"{len(seen)} records and not {len(expected)}"
    assert set(seen) == expected
    by_key: dict[int, int] = {}
    for key, count, _ in seen:
        assert by_key.get(key, 0) + 1 == count, f"key {key}: {count} is out of order"
        by_key[key] = count


# --- balance ----------------------------------------------------------------------------------


def legs(number: int) -> Iterator[tuple[int, int]]:
    """A transfer between two of a hundred accounts."""
    amount = number % 97 + 1
    yield number % 100, -amount
    yield (number * 7 + 3) % 100, amount


@pytest.mark.slow
@pytest.mark.timeout(300)
@pytest.mark.usefixtures("session")
def test_money_is_neither_made_nor_lost_at_any_moment(
    postgres: PostgresServer, tmp_path: Path
) -> None:
    with psycopg.connect(postgres.url, autocommit=True) as connection:
        connection.execute("DROP TABLE IF EXISTS legs")
        connection.execute("CREATE TABLE legs (account int, amount int)")
        env = environment(2, tmp_path / "checkpoints", "200 ms")
        stream = env.from_source(
            NumberSequenceSource(0, 60_000), WatermarkStrategy.no_watermarks(), "transfers"
        )
        accounts = stream.flat_map(legs).key_by(lambda leg: leg[0]).process(Count())
        sql = "INSERT INTO legs VALUES (?, ?)"
        sink = JdbcSink.exactly_once_sink(sql, None, jdbc(postgres))
        # One writer: its transactions are the states that anybody can see.
        accounts.map(lambda one: one[2]).sink_to(sink).set_parallelism(1).uid("legs")
        job = env.execute_async("balance")
        now = running(job, checkpoints=1)
        os.kill(slot_pids(now)[0], signal.SIGKILL)
        result, states = job.get_job_execution_result(), []

        def looked() -> bool:
            states.append(connection.execute("SELECT count(*), sum(amount) FROM legs").fetchone())
            return result.done()

        until("the end", looked, 240)
        result.result()
        states.append(connection.execute("SELECT count(*), sum(amount) FROM legs").fetchone())
    assert {total for count, total in states if count} == {0}
    assert states[-1][0] == 2 * 60_001
    assert len({count for count, _ in states}) > 2
