"""Databases as sinks, by PyFlink's names.

PostgreSQL needs the package psycopg: ``pip install 'penstock[postgres]'``. SQLite comes with
Python; any other database is reached by a function that returns a DB-API connection.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from penstock.common.typeinfo import TypeInformation
from penstock.connectors.delivery import DeliveryGuarantee
from penstock.connectors.jdbc.database import Database
from penstock.connectors.jdbc.sink import DatabaseSink
from penstock.connectors.jdbc.statement import Statement, upsert
from penstock.connectors.jdbc.writers import Batching
from penstock.errors import ProgramError

__all__ = ["JdbcConnectionOptions", "JdbcExecutionOptions", "JdbcSink"]


class JdbcConnectionOptions:
    """How to reach a database; made by its builder."""

    def __init__(self, database: Database, driver: str | None = None) -> None:
        self._database = database
        self._driver = driver

    def get_db_url(self) -> str | None:
        """The URL."""
        return self._database.url

    def get_driver_name(self) -> str | None:
        """The Java class that a PyFlink program names; nothing here uses it."""
        return self._driver

    def get_user_name(self) -> str | None:
        """The user."""
        return self._database.user

    def get_password(self) -> str | None:
        """The user's password."""
        return self._database.password

    class JdbcConnectionOptionsBuilder:
        """Builds JdbcConnectionOptions: with a URL, or with a function."""

        def __init__(self) -> None:
            self._parts: dict[str, Any] = {}
            self._driver: str | None = None

        def with_url(self, url: str) -> JdbcConnectionOptions.JdbcConnectionOptionsBuilder:
            """``jdbc:postgresql://host:5432/db`` or ``jdbc:sqlite:/path``, also without `jdbc:`."""
            self._parts["url"] = url
            return self

        def with_driver_name(
            self, driver_name: str
        ) -> JdbcConnectionOptions.JdbcConnectionOptionsBuilder:
            """Taken for the sake of PyFlink programs: the URL says which driver it is."""
            self._driver = driver_name
            return self

        def with_user_name(
            self, user_name: str
        ) -> JdbcConnectionOptions.JdbcConnectionOptionsBuilder:
            """The user."""
            self._parts["user"] = user_name
            return self

        def with_password(
            self, password: str
        ) -> JdbcConnectionOptions.JdbcConnectionOptionsBuilder:
            """The user's password."""
            self._parts["password"] = password
            return self

        def with_connector(
            self, connector: Callable[[], Any], paramstyle: str = "qmark"
        ) -> JdbcConnectionOptions.JdbcConnectionOptionsBuilder:
            """A function that returns a DB-API connection, for any database.

            `paramstyle` is that of its driver: qmark or format.
            """
            if paramstyle not in ("qmark", "format", "pyformat"):
                raise ProgramError(f"the paramstyle {paramstyle!r} is not qmark or format")
            self._parts.update(connector=connector, paramstyle=paramstyle)
            return self

        def build(self) -> JdbcConnectionOptions:
            """The options."""
            return JdbcConnectionOptions(Database(**self._parts), self._driver)


class JdbcExecutionOptions:
    """How rows are gathered; made by its builder."""

    def __init__(self, batching: Batching) -> None:
        self._batching = batching

    def get_batch_interval_ms(self) -> int:
        """How long rows are gathered at most."""
        return self._batching.interval_ms

    def get_batch_size(self) -> int:
        """How many rows are gathered at most."""
        return self._batching.size

    def get_max_retries(self) -> int:
        """How often a batch is tried again, at least once."""
        return self._batching.retries

    @staticmethod
    def defaults() -> JdbcExecutionOptions:
        """What is taken without options."""
        return JdbcExecutionOptions(Batching())

    @staticmethod
    def builder() -> JdbcExecutionOptions.Builder:
        """A builder that begins with the defaults."""
        return JdbcExecutionOptions.Builder()

    class Builder:
        """Builds JdbcExecutionOptions."""

        def __init__(self) -> None:
            self._batching = Batching()

        def with_batch_size(self, size: int) -> JdbcExecutionOptions.Builder:
            """Send rows when there are so many."""
            if size < 1:
                raise ProgramError(f"a batch of {size} rows is none")
            return self._with(size=size)

        def with_batch_interval_ms(self, interval_ms: int) -> JdbcExecutionOptions.Builder:
            """Send rows after so long, when the slot is quiet; 0: wait for a full batch."""
            if interval_ms < 0:
                raise ProgramError(f"an interval of {interval_ms} ms is in the past")
            return self._with(interval_ms=interval_ms)

        def with_max_retries(self, max_retries: int) -> JdbcExecutionOptions.Builder:
            """Try a batch so many times again, on a new connection."""
            if max_retries < 0:
                raise ProgramError(f"{max_retries} retries are none")
            return self._with(retries=max_retries)

        def build(self) -> JdbcExecutionOptions:
            """The options."""
            return JdbcExecutionOptions(self._batching)

        def _with(self, **changes: Any) -> JdbcExecutionOptions.Builder:
            self._batching = replace(self._batching, **changes)
            return self


class JdbcSink(DatabaseSink):
    """Writes rows to a database; made by `sink`, `upsert_sink` and `exactly_once_sink`."""

    @staticmethod
    def sink(
        sql: str,
        type_info: TypeInformation | None,
        jdbc_connection_options: JdbcConnectionOptions,
        jdbc_execution_options: JdbcExecutionOptions | None = None,
    ) -> JdbcSink:
        """Execute `sql`, with a question mark for each field, for every record: at least once."""
        return _sink(
            Statement(sql, _names(type_info)), jdbc_connection_options, jdbc_execution_options
        )

    @staticmethod
    def upsert_sink(
        table: str,
        columns: Sequence[str],
        key_columns: Sequence[str],
        jdbc_connection_options: JdbcConnectionOptions,
        jdbc_execution_options: JdbcExecutionOptions | None = None,
    ) -> JdbcSink:
        """Insert rows, or change those that have the same key: the right state, at least once.

        A record is a tuple in the order of `columns`, or a dict.
        """
        statement = Statement(upsert(table, columns, key_columns), tuple(columns))
        return _sink(statement, jdbc_connection_options, jdbc_execution_options)

    @staticmethod
    def exactly_once_sink(
        sql: str,
        type_info: TypeInformation | None,
        jdbc_connection_options: JdbcConnectionOptions,
        jdbc_execution_options: JdbcExecutionOptions | None = None,
        transaction_prefix: str | None = None,
    ) -> JdbcSink:
        """Execute `sql` for every record, exactly once: PostgreSQL's prepared transactions.

        The server's ``max_prepared_transactions`` must allow two for each writer.
        """
        exactly = DeliveryGuarantee.EXACTLY_ONCE
        return _sink(
            Statement(sql, _names(type_info)),
            jdbc_connection_options,
            jdbc_execution_options,
            exactly,
            transaction_prefix,
        )


def _sink(
    statement: Statement,
    connection: JdbcConnectionOptions,
    execution: JdbcExecutionOptions | None,
    guarantee: DeliveryGuarantee = DeliveryGuarantee.AT_LEAST_ONCE,
    prefix: str | None = None,
) -> JdbcSink:
    if not isinstance(connection, JdbcConnectionOptions):
        raise ProgramError("a database sink needs JdbcConnectionOptions")
    batching = (execution or JdbcExecutionOptions.defaults())._batching
    return JdbcSink(connection._database, statement, batching, guarantee, prefix)


def _names(type_info: TypeInformation | None) -> tuple[str, ...] | None:
    """The names of a row type's fields, for records that are dicts."""
    names = getattr(type_info, "get_field_names", None)
    return tuple(names()) if names is not None else None
