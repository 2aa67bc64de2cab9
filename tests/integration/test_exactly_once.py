"""Exactly once, end to end, on real Spark, while all that takes part is killed.

Kills come at random moments, and at the points of a two-phase commit that matter: see fault_points.
"""

from __future__ import annotations

import os
import random
import signal
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import psycopg
import pytest
from clusters import one_at_a_time
from confluent_kafka import Producer
from fault_points import POINTS
from kafka_parts import read_all, values
from numbers_driver import KEYS, PARTITIONS, NumbersDriver, NumbersJob, key_of

from penstock.testing.kafka import KafkaBroker
from penstock.testing.postgres import PostgresServer

pytestmark = pytest.mark.full("Kafka")

SEED = 7
Topic = Callable[..., str]
SOME = ["slot", "prepared", "broker", "completed", "slot", "database", "committing"]
ALL = [*SOME, "executor", "committed", "slot", "prepared", "driver"]


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


@one_at_a_time
@pytest.mark.timeout(3600)
def test_every_number_once_and_in_order_whatever_is_killed(
    broker: KafkaBroker,
    postgres: PostgresServer,
    topic: Topic,
    tmp_path: Path,
    request: pytest.FixtureRequest,
) -> None:
    long = request.config.getoption("--long")
    count = 100_000 if long else 20_000
    numbers, out = topic(PARTITIONS), topic(PARTITIONS)
    with psycopg.connect(postgres.url, autocommit=True) as connection:
        connection.execute("DROP TABLE IF EXISTS counted")
        connection.execute("CREATE TABLE counted (id bigserial, k int, c int, n int)")
    job = NumbersJob(
        broker.bootstrap_servers, numbers, out, postgres.url, count, str(tmp_path / "points")
    )
    feeder = Feeder(broker, numbers, count, rate=500)
    feeder.start()
    with Killing(tmp_path, job, broker, postgres) as killing:
        for victim in ALL * 2 if long else SOME:
            killing.kill(victim)
        feeder.hurry.set()
        killing.driver.wait_for(lambda now: "ended" in now, "the end")
        assert killing.driver.latest["ended"] == "FINISHED", killing.driver.story()
    feeder.join()

    expected = {(key, n // KEYS + 1, n) for n in range(count) for key in [key_of(n)]}
    seen = [tuple(map(int, value.split())) for value in values(read_all(broker, out))]
    check(seen, expected)
    with psycopg.connect(postgres.url) as connection:
        check(connection.execute("SELECT k, c, n FROM counted ORDER BY id").fetchall(), expected)
        assert connection.execute("SELECT * FROM pg_prepared_xacts").fetchall() == []


class Killing:
    """The job's driver, started again whenever it was killed, and all that can be killed."""

    def __init__(
        self, folder: Path, job: NumbersJob, broker: KafkaBroker, postgres: PostgresServer
    ) -> None:
        self._folder, self._job = folder, job
        self._servers: dict[str, Any] = {"broker": broker, "database": postgres}
        self._chance = random.Random(SEED)
        (folder / "points").mkdir()
        self.driver = NumbersDriver(folder, job)

    def __enter__(self) -> Killing:
        self.now = self.driver.wait_for(lambda now: now["completed"] >= 1, "a checkpoint")
        return self

    def __exit__(self, *exc_info: object) -> None:
        self.driver.__exit__(*exc_info)

    def kill(self, victim: str) -> None:
        """Kill, and wait until the job goes on: until it has completed a checkpoint again."""
        time.sleep(self._chance.random())
        if victim in POINTS:
            (self._folder / "points" / victim).touch()
        if victim in self._servers:
            server = self._servers[victim]
            server.kill()
            time.sleep(5 * self._chance.random())
            server.start()
            done = self.now["completed"]
            self.now = self.driver.wait_for(
                lambda now: now["completed"] >= done + 2 and now["status"] == "RUNNING", victim
            )
        elif victim == "driver" or POINTS.get(victim) == "driver":
            if victim == "driver":
                self.driver.kill()
            self.driver.wait_killed()
            self.driver.__exit__()
            self.driver = NumbersDriver(self._folder, self._job)
            self.now = self.driver.wait_for(
                lambda now: now["completed"] >= 1, f"a checkpoint after {victim}"
            )
        else:
            if victim not in POINTS:
                executor = victim == "executor"
                pids = self.driver.executors() if executor else self.now["slots"]
                os.kill(self._chance.choice(pids), signal.SIGKILL)
            self.now = self.driver.recovered(self.now)


def check(seen: list[Any], expected: set[Any]) -> None:
    assert len(seen) == len(expected), f"{len(seen)} records and not {len(expected)}"
    assert set(seen) == expected
    by_key: dict[int, int] = {}
    for key, count, _ in seen:
        assert by_key.get(key, 0) + 1 == count, f"key {key}: {count} is out of order"
        by_key[key] = count
