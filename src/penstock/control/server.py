"""The driver's end: a small HTTP server on the loopback interface.

Every request carries the token of the driver. A request is `POST /<command>` with a JSON object;
the answer is a JSON object, with the status 200 and what was asked for, or 400 and an `error`.
"""

from __future__ import annotations

import atexit
import hmac
import json
import logging
import os
import secrets
import threading
from collections.abc import Callable, Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from penstock.control.drivers import Driver, announce
from penstock.errors import PenstockError

log = logging.getLogger(__name__)

Command = Callable[[Mapping[str, Any]], Mapping[str, Any]]
"""Carries out one request; what it raises as a PenstockError is told to the caller."""

MOST_BYTES = 1 << 16
"""A request is a few names and paths."""


class ControlServer:
    """Serves `commands`, each under its name, in threads of their own."""

    def __init__(self, commands: Mapping[str, Command]) -> None:
        self.token = secrets.token_urlsafe(32)
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), _handler(commands, self.token))
        self._server.daemon_threads = True
        self.port = self._server.server_address[1]
        self._thread = threading.Thread(
            target=self._server.serve_forever, name="penstock-endpoint", daemon=True
        )
        self._thread.start()

    def announce(self) -> None:
        """Let the user's other processes find this server, for as long as the process lives."""
        path = announce(Driver(os.getpid(), self.port, self.token))
        atexit.register(lambda: path.unlink(missing_ok=True))

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()


def _handler(commands: Mapping[str, Command], token: str) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            given = self.headers.get("Authorization", "")
            if not hmac.compare_digest(given.encode(), f"Bearer {token}".encode()):
                self._answer(403, {"error": "the token is wrong"})
                return
            command = commands.get(self.path.strip("/"))
            if command is None:
                self._answer(404, {"error": f"there is no command {self.path}"})
                return
            try:
                length = int(self.headers.get("Content-Length", "0"))
                if not 0 <= length <= MOST_BYTES:
                    raise ValueError("too long")
                asked = json.loads(self.rfile.read(length) or b"{}")
            except ValueError:
                self._answer(400, {"error": "the request is no JSON object of a small size"})
                return
            try:
                self._answer(200, command(asked))
            except PenstockError as error:
                self._answer(400, {"error": error.summary()})
            except Exception as error:
                # The caller is told of a mistake of ours too, rather than cut off.
                log.exception("the command %s failed", self.path)
                self._answer(500, {"error": f"{type(error).__name__}: {error}"})

        def _answer(self, status: int, content: Mapping[str, Any]) -> None:
            data = json.dumps(content).encode()
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        def log_message(self, format: str, *arguments: Any) -> None:
            log.debug(format, *arguments)

    return Handler
