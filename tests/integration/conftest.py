"""Real servers, one of each for all tests of a run. A server that cannot start is a failure."""

from __future__ import annotations

import itertools
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

# What jobs are made of lies there, and slots import it by name.
sys.path.insert(0, str(Path(__file__).parents[1] / "spark"))
sys.path.insert(0, str(Path(__file__).parent))

from spark_fixtures import session

from penstock.testing.kafka import KafkaBroker, kafka_broker
from penstock.testing.postgres import PostgresServer, postgres_server

__all__ = ["broker", "postgres", "session", "topic"]


@pytest.fixture(scope="session")
def broker() -> Iterator[KafkaBroker]:
    with kafka_broker() as broker:
        yield broker


@pytest.fixture(scope="session")
def postgres() -> Iterator[PostgresServer]:
    with postgres_server() as server:
        yield server


_numbers = itertools.count(1)


@pytest.fixture
def topic(broker: KafkaBroker) -> Callable[[int], str]:
    """Makes a new topic with so many partitions."""

    def make(partitions: int = 1) -> str:
        name = f"topic-{next(_numbers)}"
        broker.create_topic(name, partitions)
        return name

    return make
