"""The control connection between the JobMaster and its slots: the end of a slot.

Messages are ordered per slot and never lost while both ends live. Both ends have a thread of their
own (`penstock.network.control_server` is the JobMaster's), so a user function that keeps the loop
busy for minutes is not taken for a death, and a slot whose loop is busy can still be told to go.
"""

from __future__ import annotations

import contextlib
import os
import pickle
import queue
import threading
import time
from collections.abc import Callable
from typing import Any

import cloudpickle
import zmq

from penstock.network.binding import connect
from penstock.network.curve import secure_client
from penstock.network.departure import Departure
from penstock.network.messages import Heartbeat, Leave
from penstock.network.wakeup import Wakeup

BEAT, MESSAGE = b"b", b"m"
"""What comes before a heartbeat, and before any other message of a slot."""
ALIVE = b""
"""The JobMaster's answer to a heartbeat."""


class ControlClient:
    """The slot's end. A thread owns the socket."""

    def __init__(
        self,
        address: str,
        identity: tuple[int, int],
        keys: tuple[bytes, bytes, bytes],
        wakeup: Wakeup,
    ) -> None:
        self._address = address
        self._identity = f"{identity[0]}.{identity[1]}".encode()
        self._keys = keys
        self._wakeup = wakeup
        self._own_wakeup = Wakeup()
        self._outgoing: queue.SimpleQueue[Any] = queue.SimpleQueue()
        self._incoming: queue.SimpleQueue[Any] = queue.SimpleQueue()
        self._heartbeat: Callable[[], Heartbeat] | None = None
        self._interval_s = 0.5
        self._timeout_s = 15.0
        self._departure = Departure()
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="penstock-control", daemon=True)
        # A debugger (debugpy, PyCharm's) that stops the slot leaves a thread with this mark alone.
        setattr(self._thread, "pydev_do_not_trace", True)  # noqa: B010

    def start(self, heartbeat: Callable[[], Heartbeat], interval_ms: int, timeout_ms: int) -> None:
        """Begin; `heartbeat` is called from the control thread."""
        self._heartbeat = heartbeat
        self._interval_s = interval_ms / 1000
        self._timeout_s = timeout_ms / 1000
        self._thread.start()

    def send(self, message: Any) -> None:
        """Queue a message; any thread may call this."""
        self._outgoing.put(message)
        self._own_wakeup.wake()

    def received(self) -> list[Any]:
        """The messages that have arrived."""
        messages = []
        with contextlib.suppress(queue.Empty):
            while True:
                messages.append(self._incoming.get_nowait())
        if any(isinstance(message, Leave) for message in messages):
            self._departure.noticed()
        return messages

    def _run(self) -> None:
        context: zmq.Context[zmq.Socket[bytes]] = zmq.Context()
        socket = context.socket(zmq.DEALER)
        socket.linger = 1000
        socket.sndhwm = socket.rcvhwm = 0
        socket.routing_id = self._identity
        public, secret, server_public = self._keys
        secure_client(socket, public, secret, server_public)
        connect(socket, self._address)
        poller = zmq.Poller()
        poller.register(socket, zmq.POLLIN)
        poller.register(self._own_wakeup.fileno(), zmq.POLLIN)
        try:
            self._serve(socket, poller)
        finally:
            socket.close()
            context.term()
            self._own_wakeup.close()

    def _serve(self, socket: zmq.Socket[bytes], poller: zmq.Poller) -> None:
        heard = next_beat = time.monotonic()
        while not (self._stop.is_set() and self._outgoing.empty()):
            now = time.monotonic()
            if now >= next_beat and self._heartbeat is not None:
                next_beat = now + self._interval_s
                socket.send_multipart([BEAT, pickle.dumps(self._heartbeat())])
            due = min(next_beat, self._departure.due or next_beat)
            poller.poll(max(1, int((due - time.monotonic()) * 1000)))
            self._own_wakeup.clear()
            self._send_queued(socket)
            for payload in _drain(socket):
                heard = time.monotonic()
                if payload == ALIVE:
                    continue
                message = pickle.loads(payload)
                if isinstance(message, Leave):
                    self._departure.told(message, heard)
                self._incoming.put(message)
                self._wakeup.wake()
            now, leave_by = time.monotonic(), self._departure.due
            if now - heard > self._timeout_s or (leave_by is not None and now > leave_by):
                # The JobMaster is gone, or the loop is stuck in user code and was told to go.
                # Nothing of this slot may act any longer, so there is nothing to tidy up for.
                os._exit(1)

    def _send_queued(self, socket: zmq.Socket[bytes]) -> None:
        with contextlib.suppress(queue.Empty):
            while True:
                socket.send_multipart([MESSAGE, cloudpickle.dumps(self._outgoing.get_nowait())])

    def close(self) -> None:
        """Send what is queued and end the thread."""
        self._stop.set()
        self._own_wakeup.wake()
        self._thread.join(timeout=3)


def _drain(socket: zmq.Socket[bytes]) -> list[bytes]:
    payloads = []
    with contextlib.suppress(zmq.Again):
        while True:
            payloads.append(socket.recv(zmq.NOBLOCK))
    return payloads
