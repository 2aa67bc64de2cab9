"""Text from a socket: for trying things out, with `nc -lk 9000` at the other end.

A thread receives and puts records into a bounded queue; when the queue is full it stops receiving,
and the pressure goes on to the server. Nothing that was received can be had again, so a crash loses
what came after the last checkpoint.
"""

from __future__ import annotations

import contextlib
import queue
import socket
import threading
from collections.abc import Callable
from typing import Any

from penstock.common.plain import Plain
from penstock.connectors.source import (
    EnumeratorContext,
    QueueEnumerator,
    ReaderContext,
    Source,
    SourceReader,
    SplitEnumerator,
)
from penstock.errors import PenstockError, ProgramError, RecordError, SourceError

RETRY_SECONDS = 0.5
CONNECT_SECONDS = 10.0
LONGEST_RECORD = 16 << 20
_QUEUED_BLOCKS = 16
_BLOCK_BYTES = 64 * 1024


class SocketTextSource(Source):
    """Records are what stands between delimiters; the server's closing is the end of the input."""

    def __init__(self, hostname: str, port: int, delimiter: str = "\n", max_retry: int = 0) -> None:
        if not 0 < port < 65536:
            raise ProgramError(f"{port} is not a port; ports go from 1 to 65535")
        if not delimiter:
            raise ProgramError("a socket's records need a delimiter between them")
        if max_retry < -1:
            raise ProgramError(f"a socket cannot be tried {max_retry} times; -1 is without end")
        self._address = (hostname, port)
        self._delimiter = delimiter
        self._max_retry = max_retry

    def create_enumerator(
        self, context: EnumeratorContext, restored: Plain | None
    ) -> SplitEnumerator:
        return QueueEnumerator(["socket"] if restored is None else restored)

    def create_reader(self, context: ReaderContext) -> SourceReader:
        return _SocketReader(self._address, self._delimiter, self._max_retry, context.wake)


class _SocketReader(SourceReader):
    def __init__(
        self,
        address: tuple[str, int],
        delimiter: str,
        max_retry: int,
        wake: Callable[[], None],
    ) -> None:
        self._receiver = _Receiver(address, delimiter, max_retry, wake)
        self._splits: list[Plain] = []
        self._records: list[str] = []

    def add_splits(self, splits: list[Plain]) -> None:
        self._splits.extend(splits)
        self._receiver.start()

    def poll(self, limit: int) -> list[Any] | None:
        if not self._splits:
            return None
        if not self._records:
            block = self._receiver.take()
            if block is None:
                self._splits.clear()
                return None
            self._records = block
        records, self._records = self._records[:limit], self._records[limit:]
        return records

    def snapshot(self) -> list[Plain]:
        return list(self._splits)

    def close(self) -> None:
        self._receiver.close()


class _Receiver(threading.Thread):
    """Receives in the background; the queue is its only tie to the slot's thread."""

    def __init__(
        self,
        address: tuple[str, int],
        delimiter: str,
        max_retry: int,
        wake: Callable[[], None],
    ) -> None:
        super().__init__(name=f"socket {address[0]}:{address[1]}", daemon=True)
        self._address = address
        self._delimiter = delimiter.encode()
        # As people expect of lines; any other delimiter is taken as it is.
        self._strip_return = delimiter == "\n"
        self._retries_left = max_retry
        self._wake = wake
        self._blocks: queue.Queue[list[str] | PenstockError | None]
        self._blocks = queue.Queue(_QUEUED_BLOCKS)
        self._closed = threading.Event()
        self._socket: socket.socket | None = None
        self._records = 0

    # --- the slot's side ----------------------------------------------------------------------

    def take(self) -> list[str] | None:
        """What has come: records, none just now, or None at the end. Raises what went wrong."""
        try:
            block = self._blocks.get_nowait()
        except queue.Empty:
            return []
        if isinstance(block, PenstockError):
            raise block
        return block

    def close(self) -> None:
        """Stop; a blocked receive ends at once."""
        self._closed.set()
        with contextlib.suppress(OSError):
            if self._socket is not None:
                self._socket.shutdown(socket.SHUT_RDWR)
        if self.is_alive():
            self.join(1.0)

    # --- the thread's side --------------------------------------------------------------------

    def run(self) -> None:
        end: PenstockError | None = None
        try:
            self._receive_all()
        except PenstockError as error:
            end = error
        except OSError as error:
            end = self._error(f"broke off: {error.strerror or error}")
        self._put(end)

    def _receive_all(self) -> None:
        """Connect, receive until the server closes, and connect again as often as allowed."""
        refused: PenstockError | None = None
        connected = False
        while not self._closed.is_set():
            try:
                self._socket = socket.create_connection(self._address, CONNECT_SECONDS)
            except OSError as error:
                refused = self._error(f"cannot connect: {error.strerror or error}")
            else:
                connected = True
                with self._socket:
                    self._socket.settimeout(None)
                    self._receive_until_closed(self._socket)
            if self._retries_left == 0:
                break
            self._retries_left = max(-1, self._retries_left - 1)
            self._closed.wait(RETRY_SECONDS)
        if refused is not None and not connected:
            raise refused

    def _receive_until_closed(self, connection: socket.socket) -> None:
        try:
            self._receive(connection)
        except OSError:
            if self._retries_left == 0:
                raise

    def _receive(self, connection: socket.socket) -> None:
        rest = b""
        while not self._closed.is_set() and (data := connection.recv(_BLOCK_BYTES)):
            *records, rest = (rest + data).split(self._delimiter)
            if len(rest) > LONGEST_RECORD:
                raise self._error(f"no delimiter in {len(rest)} bytes; is it the right one?")
            if records:
                self._put([self._decoded(record) for record in records])
        if rest and not self._closed.is_set():
            self._put([self._decoded(rest)])

    def _decoded(self, record: bytes) -> str:
        self._records += 1
        try:
            text = record.decode()
        except UnicodeDecodeError as error:
            shown = f"{record[:100]!r}{'...' if len(record) > 100 else ''}"
            where = f"socket {self._address[0]}:{self._address[1]}, record {self._records}"
            raise RecordError(f"{where}: it is not UTF-8: {error}: {shown}", where) from error
        return text.removesuffix("\r") if self._strip_return else text

    def _put(self, block: list[str] | PenstockError | None) -> None:
        while not self._closed.is_set():
            try:
                self._blocks.put(block, timeout=0.2)
            except queue.Full:
                continue
            self._wake()
            return

    def _error(self, what: str) -> SourceError:
        return SourceError(f"socket {self._address[0]}:{self._address[1]}: {what}")
