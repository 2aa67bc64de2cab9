"""A debugger's end of debugpy's protocol: attach, stop at a line, go on."""

from __future__ import annotations

import json
import socket
from collections.abc import Callable
from pathlib import Path
from types import TracebackType
from typing import Any

from patience import PATIENCE, until

Message = dict[str, Any]


class Debugger:
    """Attached to one process; for use in a `with` block."""

    def __init__(self, port: int) -> None:
        sockets: list[socket.socket] = []

        def connected() -> bool:
            try:
                sockets.append(socket.create_connection(("127.0.0.1", port), PATIENCE))
            except OSError:
                return False
            return True

        until(connected, "the process waits for a debugger")
        self._socket = sockets[0]
        self._stream = self._socket.makefile("rwb")
        self._sent = 0

    def __enter__(self) -> Debugger:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._stream.close()
        self._socket.close()

    def attach(self, file: Path, line: int) -> None:
        """Let the process go on, with a breakpoint."""
        self._ask("initialize", adapterID="penstock")
        self._answer("initialize")
        self._ask("attach", justMyCode=False)
        self._next(lambda message: message.get("event") == "initialized")
        self._ask("setBreakpoints", source={"path": str(file)}, breakpoints=[{"line": line}])
        self._answer("setBreakpoints")
        self._ask("configurationDone")

    def stopped(self) -> int:
        """Wait until the process stands at a breakpoint; the thread that does."""
        message = self._next(lambda message: message.get("event") == "stopped")
        thread: int = message["body"]["threadId"]
        return thread

    def go_on(self, thread: int) -> None:
        self._ask("continue", threadId=thread)
        self._answer("continue")

    def _ask(self, command: str, **arguments: Any) -> None:
        self._sent += 1
        message = {"seq": self._sent, "type": "request", "command": command, "arguments": arguments}
        body = json.dumps(message).encode()
        self._stream.write(b"Content-Length: %d\r\n\r\n" % len(body) + body)
        self._stream.flush()

    def _answer(self, command: str) -> None:
        answer = self._next(
            lambda message: message["type"] == "response" and message["command"] == command
        )
        assert answer["success"], answer

    def _next(self, wanted: Callable[[Message], bool]) -> Message:
        while not wanted(message := self._read()):
            pass
        return message

    def _read(self) -> Message:
        length = 0
        while (line := self._stream.readline()) != b"\r\n":
            assert line, "the process has hung up"
            name, _, value = line.partition(b":")
            if name.lower() == b"content-length":
                length = int(value)
        message: Message = json.loads(self._stream.read(length))
        return message
