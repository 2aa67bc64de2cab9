"""Transfers between a hundred accounts, while slots are killed: money is neither made nor lost.

A transfer is two records that go separate ways, so that they come together again only if the output
that one can see is that of whole checkpoints. One writer commits a checkpoint as one transaction,
and then the balances sum to zero whenever one looks. Of several writers the transactions are
committed one after another: in between one sees the part of a checkpoint, and only the end is sure.
"""

from __future__ import annotations

import os
import signal
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import psycopg
import pytest
from confluent_kafka import Consumer, TopicPartition
from job_parts import Count, environment, running, slot_pids
from kafka_parts import exactly_once
from numbers_driver import jdbc
from patience import PATIENCE, until

from penstock.common import WatermarkStrategy
from penstock.connectors.sink import Sink
from penstock.datastream.connectors.data_generator import DataGeneratorSource
from penstock.datastream.connectors.jdbc import JdbcSink
from penstock.testing.kafka import KafkaBroker
from penstock.testing.postgres import PostgresServer

pytestmark = pytest.mark.full("Kafka")

TRANSFERS, RATE, KILLS = 24_000, 2_000, 3
Leg = tuple[int, int]
"""An account, and what it gets."""


def number_itself(n: int) -> int:
    return n


def legs(number: int) -> Iterator[Leg]:
    """A transfer between two of a hundred accounts."""
    amount = number % 97 + 1
    yield number % 100, -amount
    yield (number * 7 + 3) % 100, amount


EXPECTED: Counter[int] = Counter()
for _number in range(TRANSFERS):
    for _account, _amount in legs(_number):
        EXPECTED[_account] += _amount


def run(
    sink: Sink, writers: int, shown: Callable[[Leg], object], folder: Path, look: Callable[[], None]
) -> None:
    """Run the job to its end, kill slots meanwhile, and look at its output again and again."""
    env = environment(2, folder / "checkpoints", "200 ms")
    source = DataGeneratorSource(number_itself, TRANSFERS, RATE)
    stream = env.from_source(source, WatermarkStrategy.no_watermarks(), "transfers")
    accounts = stream.flat_map(legs).key_by(lambda leg: leg[0]).process(Count())
    accounts.map(lambda one: shown(one[2])).sink_to(sink).set_parallelism(writers).uid("legs")
    job = env.execute_async("balance")
    result = job.get_job_execution_result()

    def watch() -> None:
        while not result.done():
            look()

    with ThreadPoolExecutor(1) as pool:
        watching = pool.submit(watch)
        for killed in range(KILLS):
            done = job.progress().completed_checkpoints
            now = running(job, attempt=killed + 1, checkpoints=done + 2)
            os.kill(slot_pids(now)[killed % 2], signal.SIGKILL)
        result.result(PATIENCE)
        watching.result(PATIENCE)
    assert job.progress().restarts >= KILLS
    look()


# --- Kafka ------------------------------------------------------------------------------------


class Ledger:
    """The balances as a consumer of committed records sees them."""

    def __init__(self, broker: KafkaBroker, topic: str) -> None:
        settings = {
            "bootstrap.servers": broker.bootstrap_servers,
            "group.id": "ledger",
            "enable.auto.commit": False,
            "isolation.level": "read_committed",
            "enable.partition.eof": True,
            # The end is reported when the broker answers that there is nothing more.
            "fetch.wait.max.ms": 10,
        }
        self._consumer = Consumer(settings)
        self._consumer.assign([TopicPartition(topic, 0, 0)])
        self.balances: Counter[int] = Counter()
        self._records = 0
        self.states: list[tuple[int, int]] = []
        """How many records there were at each last stable offset, and what they sum to."""

    def read(self) -> None:
        """Read on; where the committed records end just now there is a state to look at."""
        for message in self._consumer.consume(10_000, 0.1):
            if message.error() is None:
                account, amount = map(int, message.value().split())
                self.balances[account] += amount
                self._records += 1
            else:
                self.states.append((self._records, self.balances.total()))

    def close(self) -> None:
        self._consumer.close()


@pytest.mark.usefixtures("session")
def test_committed_records_of_a_topic_sum_to_zero_at_any_moment(
    broker: KafkaBroker, topic: Callable[..., str], tmp_path: Path
) -> None:
    name = topic()
    ledger = Ledger(broker, name)
    try:
        sink = exactly_once(broker, name, name)
        run(sink, 1, lambda leg: f"{leg[0]} {leg[1]}", tmp_path, ledger.read)

        def complete() -> bool:
            ledger.read()
            return bool(ledger.states) and ledger.states[-1][0] >= 2 * TRANSFERS

        until(complete, "all records")
    finally:
        ledger.close()
    assert {total for _, total in ledger.states} == {0}
    assert ledger.states[-1][0] == 2 * TRANSFERS
    assert ledger.balances == EXPECTED
    assert len({count for count, _ in ledger.states}) > 2 * KILLS, "it was seen to grow"


# --- PostgreSQL -------------------------------------------------------------------------------


@pytest.mark.usefixtures("session")
@pytest.mark.parametrize("writers", [1, 2])
def test_rows_of_a_table_sum_to_zero(
    postgres: PostgresServer, tmp_path: Path, writers: int
) -> None:
    states: list[tuple[int, int | None]] = []
    with psycopg.connect(postgres.url, autocommit=True) as connection:
        connection.execute("DROP TABLE IF EXISTS legs")
        connection.execute("CREATE TABLE legs (account int, amount int)")

        def look() -> None:
            found = connection.execute("SELECT count(*), sum(amount) FROM legs").fetchone()
            assert found is not None
            states.append(found)

        sql = "INSERT INTO legs VALUES (?, ?)"
        sink = JdbcSink.exactly_once_sink(sql, None, jdbc(postgres.url))
        run(sink, writers, lambda leg: leg, tmp_path, look)
        rows = connection.execute("SELECT account, sum(amount) FROM legs GROUP BY account")
        assert dict(rows.fetchall()) == EXPECTED
    assert states[-1] == (2 * TRANSFERS, 0)
    assert len({count for count, _ in states}) > 2 * KILLS, "it was seen to grow"
    if writers == 1:
        assert {total for count, total in states if count} == {0}
