"""Which database, and how to connect: a JDBC URL, or a function that returns a connection."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from typing import Any
from urllib.parse import urlsplit

from penstock.errors import ProgramError, SinkError

_CONNECTION: dict[str, Any] = {
    "connect_timeout": 10,
    # Without these a connection whose other end has vanished is noticed after hours.
    "keepalives": 1,
    "keepalives_idle": 30,
    "keepalives_interval": 10,
    "keepalives_count": 3,
    "tcp_user_timeout": 60_000,
}
"""How connections to PostgreSQL are made, unless the URL says otherwise."""


@dataclass(frozen=True)
class Database:
    """A database; it is pickled into the job."""

    url: str | None = None
    user: str | None = None
    password: str | None = None
    connector: Callable[[], Any] | None = None
    paramstyle: str = "qmark"
    """How the driver of `connector` marks parameters: qmark or format."""

    def __post_init__(self) -> None:
        if self.connector is None and not (self.is_postgres() or self._sqlite() is not None):
            raise ProgramError(
                f"{self.url!r} is neither a PostgreSQL nor an SQLite URL; other databases are "
                "reached by a function that returns a DB-API connection"
            )

    def is_postgres(self) -> bool:
        return self.url is not None and self._plain().startswith(("postgresql://", "postgres://"))

    @property
    def mark(self) -> str:
        """What stands for a parameter."""
        return "%s" if self.is_postgres() or self.paramstyle in ("format", "pyformat") else "?"

    def shown(self) -> str:
        """Which database, without secrets."""
        if self.connector is not None:
            return "the database"
        parts = urlsplit(self._plain())
        return f"{parts.scheme}://{parts.hostname or ''}{parts.path}"

    def connect(self, **options: Any) -> Any:
        """A new connection; SinkError if there is none to be had."""
        try:
            if self.connector is not None:
                return self.connector()
            path = self._sqlite()
            if path is not None:
                return sqlite3.connect(path, timeout=60, check_same_thread=False)
            return self._psycopg(**options)
        except ProgramError:
            raise
        except Exception as error:
            raise SinkError(f"{self.shown()} cannot be reached: {error}") from error

    def _psycopg(self, **options: Any) -> Any:
        psycopg = need_psycopg()
        said = psycopg.conninfo.conninfo_to_dict(self._plain())
        own = {key: value for key, value in _CONNECTION.items() if key not in said}
        own.update({"user": self.user, "password": self.password, **options})
        given = {key: value for key, value in own.items() if value is not None}
        return psycopg.connect(self._plain(), **given)

    def _plain(self) -> str:
        return (self.url or "").removeprefix("jdbc:")

    def _sqlite(self) -> str | None:
        plain = self._plain()
        return plain.removeprefix("sqlite:") if plain.startswith("sqlite:") else None


def need_psycopg() -> Any:
    """The module psycopg, or an error that says how to get it."""
    try:
        return import_module("psycopg")
    except ImportError as error:
        raise ProgramError(
            "PostgreSQL needs the package psycopg: pip install 'penstock[postgres]'"
        ) from error
