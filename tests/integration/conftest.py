"""Real servers, one of each for all tests of a run. A server that cannot start is a failure."""

from __future__ import annotations

import itertools
import os
import subprocess
import sys
import time
import urllib.request
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest

# What jobs are made of lies there, and slots import it by name.
sys.path.insert(0, str(Path(__file__).parents[1] / "spark"))
sys.path.insert(0, str(Path(__file__).parent))

from hdfs_server import hdfs_server
from kafka_users import guarded_broker
from patience import until
from psycopg.sql import SQL
from spark_fixtures import session

from penstock.testing.kafka import KafkaBroker, kafka_broker
from penstock.testing.ports import free_ports
from penstock.testing.postgres import PostgresServer, postgres_server

__all__ = ["broker", "bucket", "guarded", "hdfs", "postgres", "s3_server", "session", "topic"]


def _answers(url: str) -> bool:
    try:
        with urllib.request.urlopen(url, timeout=2):
            return True
    except OSError:
        return False


@pytest.fixture(scope="session")
def s3_server() -> Iterator[str]:
    """The address of an S3 server, in a process of its own."""
    try:
        import moto.server  # noqa: F401
        import s3fs  # noqa: F401
    except ImportError:
        if os.environ.get("CI"):
            pytest.fail("s3fs and moto[server] are not installed")
        pytest.skip("s3fs and moto[server] are not installed")
    port = free_ports(1)[0]
    command = [sys.executable, "-m", "moto.server", "-H", "127.0.0.1", "-p", str(port)]
    server = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    address = f"http://127.0.0.1:{port}"
    try:
        deadline = time.monotonic() + 60
        while not _answers(f"{address}/moto-api/"):
            assert server.poll() is None, "the S3 server did not start"
            assert time.monotonic() < deadline, "the S3 server does not answer"
            time.sleep(0.1)
        yield address
    finally:
        server.kill()
        server.wait()


@pytest.fixture
def bucket(s3_server: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """The URI of an empty bucket."""
    from penstock.common.fsspec_filesystem import open_filesystem

    for name, value in (
        ("AWS_ENDPOINT_URL", s3_server),
        ("AWS_ACCESS_KEY_ID", "test"),
        ("AWS_SECRET_ACCESS_KEY", "test"),
        ("AWS_DEFAULT_REGION", "us-east-1"),
    ):
        monkeypatch.setenv(name, value)
    import s3fs

    name = f"bucket-{uuid.uuid4().hex[:12]}"
    s3fs.S3FileSystem(skip_instance_cache=True).mkdir(name)
    open_filesystem.cache_clear()
    yield f"s3://{name}"
    open_filesystem.cache_clear()


@pytest.fixture(scope="session")
def hdfs() -> Iterator[str]:
    """The address of an HDFS."""
    with hdfs_server() as address:
        yield address


@pytest.fixture(scope="session")
def one_broker() -> Iterator[KafkaBroker]:
    with kafka_broker() as broker:
        yield broker


@pytest.fixture
def broker(one_broker: KafkaBroker) -> KafkaBroker:
    """A broker that runs, though a test before this one killed it and failed."""
    if not one_broker.runs:
        one_broker.start()
    return one_broker


@pytest.fixture(scope="session")
def guarded() -> Iterator[KafkaBroker]:
    """A broker whose users have no rights but those that a test gives them."""
    with guarded_broker() as broker:
        yield broker


@pytest.fixture(scope="session")
def one_postgres() -> Iterator[PostgresServer]:
    with postgres_server() as server:
        yield server


@pytest.fixture
def postgres(one_postgres: PostgresServer) -> PostgresServer:
    """A server that runs, though a test before this one killed it and failed.

    Nobody holds a lock: what a failed test left open would make the next one wait for ever.
    """
    if not one_postgres.runs:
        one_postgres.start()
    with psycopg.connect(one_postgres.url, autocommit=True) as connection:
        until(lambda: not _end_others(connection), "the end of older connections")
        for (name,) in connection.execute("SELECT gid FROM pg_prepared_xacts").fetchall():
            connection.execute(SQL("ROLLBACK PREPARED {}").format(name))
    return one_postgres


def _end_others(connection: psycopg.Connection[Any]) -> list[Any]:
    return connection.execute(
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
        " WHERE backend_type = 'client backend' AND pid <> pg_backend_pid()"
    ).fetchall()


_numbers = itertools.count(1)


@pytest.fixture
def topic(broker: KafkaBroker) -> Callable[[int], str]:
    """Makes a new topic with so many partitions."""

    def make(partitions: int = 1) -> str:
        name = f"topic-{next(_numbers)}"
        broker.create_topic(name, partitions)
        return name

    return make
