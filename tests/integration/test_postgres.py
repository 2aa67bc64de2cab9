"""Databases as sinks: a real PostgreSQL server, and SQLite for the path of all others."""

from __future__ import annotations

import contextlib
import functools
import os
import socket
import sqlite3
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import psutil
import psycopg
import pytest
from numbers_driver import jdbc
from patience import PATIENCE, until
from sink_parts import begun, committer, open_writer, put

from penstock.common import Types
from penstock.connectors.jdbc.database import Database
from penstock.connectors.jdbc.statement import upsert, with_marks
from penstock.connectors.sink import CommitterContext
from penstock.datastream.connectors.jdbc import (
    JdbcConnectionOptions,
    JdbcExecutionOptions,
    JdbcSink,
)
from penstock.errors import ProgramError, RecordError, SinkError
from penstock.testing.postgres import PostgresServer

pytestmark = pytest.mark.full("PostgreSQL")

INSERT = "INSERT INTO pairs VALUES (?, ?)"


@pytest.fixture
def table(postgres: PostgresServer) -> Any:
    with psycopg.connect(postgres.url, autocommit=True) as connection:
        connection.execute("DROP TABLE IF EXISTS pairs")
        connection.execute("CREATE TABLE pairs (k text, v int)")
        yield lambda: sorted(connection.execute("SELECT k, v FROM pairs").fetchall())


# --- the server of these tests ----------------------------------------------------------------


def test_a_killed_server_is_gone_with_its_connections(postgres: PostgresServer) -> None:
    with psycopg.connect(postgres.url) as connection:
        serving = psutil.Process(connection.info.backend_pid)
        server = serving.parent()
        assert server is not None
        serving.suspend()  # it does not notice yet that its server is killed

        def kill() -> int:
            postgres.kill()
            with contextlib.suppress(psutil.NoSuchProcess):
                return serving.memory_info().rss
            return 0

        with ThreadPoolExecutor(1) as pool:
            left = pool.submit(kill)
            until(lambda: not server.is_running(), "the end of the server")
            serving.resume()
            assert left.result(PATIENCE) == 0
    postgres.start()


# --- at least once ----------------------------------------------------------------------------


def test_rows_are_there_after_a_checkpoint_and_upserts_may_come_again(
    postgres: PostgresServer, table: Any
) -> None:
    with psycopg.connect(postgres.url) as connection:
        connection.execute("ALTER TABLE pairs ADD PRIMARY KEY (k)")
    batches = JdbcExecutionOptions.builder().with_batch_size(2).build()
    sink = JdbcSink.upsert_sink("pairs", ["k", "v"], ["k"], jdbc(f"jdbc:{postgres.url}"), batches)
    assert sink.create_committer(CommitterContext("job", "uid")) is None
    for _ in range(2):
        writer = open_writer(sink)
        put(writer, ("a", 1), ("b", 2), ("a", 3), {"v": 4, "k": "c"})
        assert writer.prepare_commit()() == []
        writer.close()
        assert table() == [("a", 3), ("b", 2), ("c", 4)]


def test_a_server_that_is_away_is_waited_for(
    postgres: PostgresServer, table: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    connect, refused = Database.connect, threading.Event()

    def noted(self: Database, **options: Any) -> Any:
        try:
            return connect(self, **options)
        except SinkError:
            refused.set()
            raise

    monkeypatch.setattr(Database, "connect", noted)
    often = JdbcExecutionOptions.builder().with_max_retries(20).build()
    writer = open_writer(JdbcSink.sink(INSERT, None, jdbc(postgres.url), often))
    put(writer, ("a", 1))
    writer.prepare_commit()()
    postgres.kill()
    put(writer, ("b", 2))
    prepared = writer.prepare_commit()
    with ThreadPoolExecutor(1) as pool:
        preparing = pool.submit(prepared)
        assert refused.wait(PATIENCE)
        postgres.start()
        preparing.result(PATIENCE)
    writer.close()
    with psycopg.connect(postgres.url) as connection:
        found = connection.execute("SELECT k FROM pairs ORDER BY k").fetchall()
    assert found == [("a",), ("b",)]


def test_a_server_that_stays_away_is_an_error(postgres: PostgresServer, table: Any) -> None:
    once = JdbcExecutionOptions.builder().with_max_retries(1).build()
    writer = open_writer(JdbcSink.sink(INSERT, None, jdbc(postgres.url), once))
    postgres.kill()
    put(writer, ("a", 1))
    with pytest.raises(SinkError, match="cannot be reached"):
        writer.prepare_commit()()
    writer.close()
    postgres.start()


def test_a_writer_that_waits_for_its_server_can_be_closed(
    postgres: PostgresServer, table: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("penstock.connectors.jdbc.writers.MOST_PAUSE_SECONDS", 3600.0)
    often = JdbcExecutionOptions.builder().with_max_retries(50).build()
    writer = open_writer(JdbcSink.sink(INSERT, None, jdbc(postgres.url), often))
    thread = writer._worker._thread
    postgres.kill()
    put(writer, ("a", 1))
    prepared = writer.prepare_commit()
    writer.close()
    thread.join(PATIENCE)
    assert not thread.is_alive()
    with pytest.raises(Exception, match=r"cannot be reached|closed"):
        prepared()
    postgres.start()


@pytest.mark.parametrize(("given", "idle"), [("", 30), ("?keepalives_idle=7", 7)])
def test_a_connection_that_is_dead_is_noticed(
    postgres: PostgresServer, given: str, idle: int
) -> None:
    database = Database(f"jdbc:{postgres.url}{given}")
    connection = database.connect()
    with socket.socket(fileno=os.dup(connection.fileno())) as link:
        assert link.getsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE) == 1
        found = [
            link.getsockopt(socket.IPPROTO_TCP, option)
            for option in (socket.TCP_KEEPIDLE, socket.TCP_KEEPINTVL, socket.TCP_KEEPCNT)
        ]
        assert found == [idle, 10, 3]
        assert link.getsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT) == 60_000
    connection.close()


def test_any_database_by_a_function(tmp_path: Path) -> None:
    path = str(tmp_path / "db")
    with sqlite3.connect(path) as connection:
        connection.execute('CREATE TABLE pairs (k text PRIMARY KEY, "odd name" int)')
    connect = functools.partial(sqlite3.connect, path, check_same_thread=False)
    by_function = JdbcConnectionOptions.JdbcConnectionOptionsBuilder().with_connector(connect)
    for connection_options in (by_function.build(), jdbc(f"jdbc:sqlite:{path}")):
        sink = JdbcSink.upsert_sink("pairs", ["k", "odd name"], ["k"], connection_options)
        writer = open_writer(sink)
        put(writer, *[(str(n % 5), n) for n in range(5000)])
        writer.prepare_commit()()
        writer.close()
        with sqlite3.connect(path) as connection:
            found = sorted(connection.execute("SELECT * FROM pairs").fetchall())
        assert found == [(str(n), 4995 + n) for n in range(5)]


def test_what_cannot_be_written_is_an_error(postgres: PostgresServer, table: Any) -> None:
    sink = JdbcSink.sink(INSERT, Types.ROW([Types.STRING(), Types.INT()]), jdbc(postgres.url))
    writer = open_writer(sink)
    with pytest.raises(RecordError, match="3 fields and the statement 2"):
        put(writer, ("a", 1, 2))
    put(writer, ("a", "no number"))
    with pytest.raises(SinkError, match="no number"):
        writer.prepare_commit()()
    writer.close()
    nowhere = JdbcSink.sink(INSERT, None, jdbc("jdbc:postgresql://127.0.0.1:1/none"))
    with pytest.raises(SinkError, match=r"127\.0\.0\.1/none cannot be reached"):
        open_writer(nowhere)
    with pytest.raises(ProgramError, match="needs PostgreSQL"):
        JdbcSink.exactly_once_sink(INSERT, None, jdbc("jdbc:sqlite:x"))
    with pytest.raises(ProgramError, match="mysql"):
        jdbc("jdbc:mysql://host/db")


def test_statements() -> None:
    assert upsert("s.t", ["a", 'b"'], ["a"]) == (
        'INSERT INTO "s"."t" ("a", "b""") VALUES (?, ?) '
        'ON CONFLICT ("a") DO UPDATE SET "b""" = excluded."b"""'
    )
    assert upsert("t", ["a"], ["a"]).endswith("DO NOTHING")
    assert with_marks("a = ? and b = '?%' and c = ?", "%s") == "a = %s and b = '?%%' and c = %s"
    with pytest.raises(ProgramError, match="c is none"):
        upsert("t", ["a"], ["c"])


# --- exactly once -----------------------------------------------------------------------------


@pytest.fixture
def exactly_once(postgres: PostgresServer) -> JdbcSink:
    return JdbcSink.exactly_once_sink(INSERT, None, jdbc(postgres.url))


def test_prepared_rows_are_visible_when_committed(exactly_once: JdbcSink, table: Any) -> None:
    end, writer = begun(exactly_once)
    assert writer.prepare_commit()() == []
    put(writer, ("a", 1))
    prepare = writer.prepare_commit()
    put(writer, ("b", 2))
    first = prepare()
    assert table() == []
    end.commit(first)
    end.commit(first)
    assert table() == [("a", 1)]
    end.commit(writer.prepare_commit()())
    assert table() == [("a", 1), ("b", 2)]
    writer.close()


def test_another_process_commits_and_rolls_the_rest_back(
    postgres: PostgresServer, exactly_once: JdbcSink, table: Any
) -> None:
    old = open_writer(exactly_once)
    put(old, ("covered", 1))
    covered = old.prepare_commit()()
    put(old, ("beyond", 2))
    beyond = old.prepare_commit()()
    put(old, ("open", 3))
    postgres.kill()
    postgres.start()
    other = committer(exactly_once)
    stranger = committer(exactly_once, "another job")
    stranger.abort_others([])
    other.abort_others(covered)
    other.commit(covered)
    other.commit(covered)
    other.abort_others([])
    with pytest.raises(SinkError, match=f"{beyond[0]['transaction']}.* is aborted"):
        other.commit(beyond)
    late = old.prepare_commit()
    with pytest.raises(SinkError):
        late()
    old.close()
    with psycopg.connect(postgres.url) as connection:
        assert connection.execute("SELECT k FROM pairs").fetchall() == [("covered",)]
        assert connection.execute("SELECT * FROM pg_prepared_xacts").fetchall() == []


def test_a_writer_of_an_old_attempt_is_cut_off(exactly_once: JdbcSink, table: Any) -> None:
    zombie = open_writer(exactly_once)
    put(zombie, ("zombie", 1))
    committer(exactly_once).abort_others([])
    late = zombie.prepare_commit()
    with pytest.raises(SinkError):
        late()
    zombie.close()
    assert table() == []
