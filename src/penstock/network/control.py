"""The control connection between the JobMaster and its slots.

Messages are ordered per slot and never lost while both ends live. The slot's end has a thread of
its own, so a user function that keeps the loop busy for minutes is not taken for a death, and a
slot whose loop is busy can still be told to go.
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

from penstock.network.curve import Guard, new_keys, secure_client, secure_server
from penstock.network.departure import Departure
from penstock.network.messages import Heartbeat, Leave
from penstock.network.wakeup import Wakeup

_ALIVE = b""
"""The JobMaster's answer to a heartbeat."""


class ControlServer:
    """The JobMaster's end. All methods but `wake` are called from its one thread."""

    def __init__(self, host: str) -> None:
        self._context: zmq.Context[zmq.Socket[bytes]] = zmq.Context()
        self.public, secret = new_keys()
        self.client_public, self.client_secret = new_keys()
        self._guard = Guard(self._context, self.client_public)
        self._router = self._context.socket(zmq.ROUTER)
        self._router.linger = 1000
        self._router.sndhwm = self._router.rcvhwm = 0
        # A slot that is launched again must not inherit the identity's old connection.
        self._router.router_handover = True
        secure_server(self._router, self.public, secret)
        port = self._router.bind_to_random_port(f"tcp://{host}")
        self.address = f"tcp://{host}:{port}"
        self._wakeup = Wakeup()
        self._poller = zmq.Poller()
        for readable in (self._router, self._guard.socket, self._wakeup.fileno()):
            self._poller.register(readable, zmq.POLLIN)

    def wake(self) -> None:
        self._wakeup.wake()

    def send(self, launch: int, slot: int, message: Any) -> None:
        """Lost if the slot is not connected (any more)."""
        identity = f"{launch}.{slot}".encode()
        with contextlib.suppress(zmq.ZMQError):
            self._router.send_multipart([identity, cloudpickle.dumps(message)], zmq.NOBLOCK)

    def wait(self, timeout_ms: int | None) -> list[tuple[int, Any]]:
        """The messages that arrived, each with its launch, after at most `timeout_ms`."""
        self._poller.poll(timeout_ms)
        self._wakeup.clear()
        self._guard.serve()
        messages: list[tuple[int, Any]] = []
        while True:
            try:
                identity, payload = self._router.recv_multipart(zmq.NOBLOCK)
            except zmq.Again:
                return messages
            message = pickle.loads(payload)
            if isinstance(message, Heartbeat):
                with contextlib.suppress(zmq.ZMQError):
                    self._router.send_multipart([identity, _ALIVE], zmq.NOBLOCK)
            messages.append((int(identity.split(b".")[0]), message))

    def close(self) -> None:
        self._router.close()
        self._guard.close()
        self._context.term()
        self._wakeup.close()


class ControlClient:
    """The slot's end."""

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
        socket.connect(self._address)
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
                socket.send(pickle.dumps(self._heartbeat()))
            due = min(next_beat, self._departure.due or next_beat)
            poller.poll(max(1, int((due - time.monotonic()) * 1000)))
            self._own_wakeup.clear()
            self._send_queued(socket)
            for payload in _drain(socket):
                heard = time.monotonic()
                if payload == _ALIVE:
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
                socket.send(cloudpickle.dumps(self._outgoing.get_nowait()))

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
