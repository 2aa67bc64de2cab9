"""Writers of a database: rows go out in batches; a checkpoint ends a transaction.

At least once, the transaction is committed then and there. Exactly once, it is *prepared*, which
takes it out of the connection's hands: it survives the connection, the process and the server, and
anybody may commit it later by its name.
"""

from __future__ import annotations

import contextlib
import threading
import uuid
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from penstock.common.clock import Clock
from penstock.common.plain import Plain
from penstock.connectors.jdbc.database import Database
from penstock.connectors.jdbc.statement import Statement, with_marks
from penstock.connectors.jdbc.worker import Worker
from penstock.connectors.sink import SinkWriter
from penstock.errors import PenstockError, SinkError

LOCK_TIMEOUT_MS = 30_000
"""How long a row may be held by another transaction before the attempt fails."""
MOST_PAUSE_SECONDS = 10.0
"""The longest pause before a server that could not be reached is tried again."""


@dataclass(frozen=True)
class Batching:
    """When gathered rows are sent."""

    size: int = 1000
    interval_ms: int = 0
    """At the latest after so long; 0: only when the batch is full, or at a checkpoint."""
    retries: int = 3


class DatabaseWriter(SinkWriter):
    """Writes at least once."""

    def __init__(
        self,
        database: Database,
        statement: Statement,
        batching: Batching,
        clock: Clock,
        wake: Callable[[], None],
    ) -> None:
        self._database = database
        self._statement = statement
        self._sql = with_marks(statement.sql, database.mark)
        self._batching = batching
        self._clock = clock
        self._wake = wake
        self._rows: list[tuple[Any, ...]] = []
        self._since_ms = 0
        self._connection: Any = None
        self._worker: Worker | None = None
        self._closing = threading.Event()

    def open(self) -> None:
        self._worker = Worker(self._wake)
        # Fail here, where the server's name is fresh in mind, not at the first batch.
        self._worker.submit(self._connect).result()

    def write(self, value: Any) -> None:
        row = self._statement.parameters(value)
        if not self._rows:
            self._since_ms = self._clock.monotonic_ms()
        self._rows.append(row)
        if len(self._rows) >= self._batching.size:
            self._send()

    def has_room(self) -> bool:
        return self._running().has_room()

    def flush(self) -> None:
        self._running().check()
        interval = self._batching.interval_ms
        if interval and self._rows and self._clock.monotonic_ms() - self._since_ms >= interval:
            self._send()

    def prepare_commit(self) -> Callable[[], list[Plain]]:
        self._send()
        done = self._running().submit(self._end_transaction)

        def finish() -> list[Plain]:
            ended: list[Plain] = done.result()
            return ended

        return finish

    def close(self) -> None:
        self._closing.set()
        if self._worker is not None:
            self._worker.close(self._disconnect)
            self._worker = None

    # --- in the worker's thread ---------------------------------------------------------------

    def _send(self) -> None:
        rows, self._rows = self._rows, []
        if rows:
            self._running().submit(lambda: self._execute(rows))

    def _execute(self, rows: list[tuple[Any, ...]]) -> None:
        pause = 1.0
        for left in reversed(range(self._batching.retries + 1)):
            try:
                if self._connection is None:
                    self._connect()
                self._run(rows)
                self._connection.commit()
                return
            except Exception as error:
                away = self._connection is None
                self._disconnect()
                if not left or self._closing.is_set():
                    raise self._failure(error) from error
                if away:
                    self._closing.wait(pause)
                    pause = min(2 * pause, MOST_PAUSE_SECONDS)

    def _run(self, rows: list[tuple[Any, ...]]) -> None:
        cursor = self._connection.cursor()
        try:
            cursor.executemany(self._sql, rows)
        finally:
            cursor.close()

    def _end_transaction(self) -> list[Plain]:
        """Every batch is committed already."""
        return []

    def _connect(self) -> None:
        self._connection = self._database.connect()

    def _disconnect(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            # Some drivers do not let a broken connection be closed.
            with contextlib.suppress(Exception):
                connection.close()

    def _failure(self, error: Exception) -> PenstockError:
        if isinstance(error, PenstockError):
            return error
        return SinkError(f"{self._database.shown()} does not take the rows: {error}")

    def _running(self) -> Worker:
        assert self._worker is not None, "a writer is opened before it is used"
        return self._worker


class TwoPhaseWriter(DatabaseWriter):
    """Writes exactly once, to PostgreSQL."""

    def __init__(self, *parts: Any, owner: str, session: str) -> None:
        super().__init__(*parts)
        self._prefix = f"{owner}{uuid.uuid4().hex[:12]}:"
        self._session = session
        self._number = 0
        self._open = False

    def _connect(self) -> None:
        options = f"-c lock_timeout={LOCK_TIMEOUT_MS}"
        self._connection = self._database.connect(application_name=self._session, options=options)

    def _execute(self, rows: list[tuple[Any, ...]]) -> None:
        try:
            self._run(rows)
            self._open = True
        except Exception as error:
            # What the transaction held so far is gone with it: only a new attempt has it again.
            raise self._failure(error) from error

    def _end_transaction(self) -> list[Plain]:
        if not self._open:
            return []
        self._number += 1
        name = f"{self._prefix}{self._number}"
        try:
            cursor = self._connection.cursor()
            number = cursor.execute("SELECT pg_current_xact_id()::text").fetchone()[0]
            cursor.execute(f"PREPARE TRANSACTION '{name}'")
            # The connection is outside of a transaction now, which the driver learns by this.
            self._connection.commit()
        except Exception as error:
            raise self._failure(error) from error
        self._open = False
        return [{"transaction": name, "number": int(number)}]
