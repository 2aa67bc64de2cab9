"""Ends prepared transactions of PostgreSQL from the JobMaster.

A transaction that is not there any more was committed or rolled back; the server remembers which,
by its number (`pg_xact_status`), so committing again is harmless and a loss is noticed.
"""

from __future__ import annotations

import hashlib
import re
from typing import Any

from penstock.common.plain import Plain
from penstock.connectors.jdbc.database import Database, need_psycopg
from penstock.connectors.sink import Committer
from penstock.errors import LostOutputError, SinkError

_SAFE = re.compile(r"[^'\0]*")
"""What leaves a text in quotes as one."""


_FORGOTTEN = "unknown to the server, so it may have been committed or not"
_VISIBLE = ("committed", _FORGOTTEN)
"""The states in which a transaction is visible, or may be."""


def owner_of(prefix: str, uid: str) -> str:
    """What the names of a sink's transactions begin with."""
    digest = hashlib.sha256(uid.encode()).hexdigest()[:8]
    return f"penstock:{prefix.replace(chr(39), '')}:{digest}:"


def session_of(owner: str) -> str:
    """What connections of a sink's writers call themselves, in the server's 63 characters."""
    return f"penstock {hashlib.sha256(owner.encode()).hexdigest()[:24]}"


def _check(name: Plain) -> None:
    """SinkError unless it can be a name of ours: it becomes part of a statement."""
    if type(name) is not str or not name.startswith("penstock:") or not _SAFE.fullmatch(name):
        raise SinkError(
            f"a checkpoint covers the prepared transaction {name!r:.300}, which is no name that a "
            "sink gives: the checkpoint was altered"
        )


class PostgresCommitter(Committer):
    """The committer of an exactly-once sink."""

    def __init__(self, database: Database, owner: str) -> None:
        self._database = database
        self._owner = owner

    def commit(self, committables: list[Plain]) -> None:
        for committable in committables:
            _check(committable["transaction"])
        with self._connection() as connection:
            prepared = self._prepared(connection, committables)
            for number, committable in enumerate(committables):
                if committable["transaction"] in prepared:
                    self._commit(connection, committable, visible=committables[:number])

    def check(self, committables: list[Plain]) -> None:
        with self._connection() as connection:
            self._prepared(connection, committables)

    def _prepared(self, connection: Any, committables: list[Plain]) -> set[str]:
        """Which transactions are prepared; LostOutputError if one of the others is lost."""
        states = self._states(connection, committables)
        lost = [
            c for c in committables if states[c["transaction"]] not in ("prepared", "committed")
        ]
        if lost:
            visible = [c for c in committables if states[c["transaction"]] in _VISIBLE]
            raise self._lost(lost, states[lost[0]["transaction"]], visible)
        return {name for name, state in states.items() if state == "prepared"}

    def visible(self, committables: list[Plain]) -> list[Plain]:
        with self._connection() as connection:
            states = self._states(connection, committables)
        return [c for c in committables if states[c["transaction"]] in _VISIBLE]

    def _states(self, connection: Any, committables: list[Plain]) -> dict[str, str]:
        """What became of each transaction, by its name."""
        names = [committable["transaction"] for committable in committables]
        query = "SELECT gid FROM pg_prepared_xacts WHERE gid = ANY(%s)"
        prepared = {name for (name,) in connection.execute(query, (names,)).fetchall()}
        return {
            c["transaction"]: "prepared"
            if c["transaction"] in prepared
            else self._state(connection, c["number"])
            for c in committables
        }

    def _state(self, connection: Any, number: int) -> str:
        """What became of a transaction that is not prepared (any more)."""
        query = "SELECT pg_xact_status(%s::text::xid8)"
        (status,) = connection.execute(query, (str(number),)).fetchone()
        return status or _FORGOTTEN

    def _lost(self, lost: list[Plain], state: str, visible: list[Plain]) -> LostOutputError:
        more = f", and {len(lost) - 1} more are lost" if len(lost) > 1 else ""
        return LostOutputError(
            "a checkpoint covers output that cannot be committed, its records are lost: the "
            f"prepared transaction {lost[0]['transaction']} (number {lost[0]['number']}) of "
            f"{self._database.shown()} is {state}{more}",
            lost,
            visible,
        )

    def abort_others(self, keep: list[Plain]) -> None:
        """Roll back what is prepared; end the sessions that could prepare more."""
        kept = {committable["transaction"] for committable in keep}
        with self._connection() as connection:
            connection.execute(
                "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
                "WHERE application_name = %s",
                (session_of(self._owner),),
            )
            # A session that ends may still have a statement to finish.
            connection.execute(
                "DO $$ BEGIN FOR i IN 1..200 LOOP PERFORM pg_stat_clear_snapshot(); "
                "EXIT WHEN NOT EXISTS (SELECT FROM pg_stat_activity WHERE application_name = "
                f"'{session_of(self._owner)}'); PERFORM pg_sleep(0.01); END LOOP; END $$"
            )
            found = connection.execute(
                "SELECT gid FROM pg_prepared_xacts WHERE database = current_database() "
                "AND starts_with(gid, %s)",
                (self._owner,),
            ).fetchall()
            for (name,) in found:
                if name not in kept:
                    self._roll_back(connection, name)

    def _commit(self, connection: Any, committable: Plain, visible: list[Plain]) -> None:
        """Commit one; `visible` are committed already."""
        try:
            connection.execute(f"COMMIT PREPARED '{committable['transaction']}'")
        except need_psycopg().errors.UndefinedObject as error:
            # Somebody else was faster.
            state = self._state(connection, committable["number"])
            if state != "committed":
                if state in _VISIBLE:
                    visible = [*visible, committable]
                raise self._lost([committable], state, visible) from error

    def _roll_back(self, connection: Any, name: str) -> None:
        psycopg = need_psycopg()
        try:
            connection.execute(f"ROLLBACK PREPARED '{name}'")
        except psycopg.errors.UndefinedObject:
            return  # somebody else was faster

    def _connection(self) -> _Connection:
        return _Connection(self._database)


class _Connection:
    """A connection for one task; each statement stands for itself."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def __enter__(self) -> Any:
        self._connection = self._database.connect(autocommit=True)
        return self._connection

    def __exit__(self, kind: Any, error: BaseException | None, traceback: Any) -> None:
        self._connection.close()
        if isinstance(error, need_psycopg().Error):
            raise SinkError(f"{self._database.shown()}: {error}") from error
