"""The JobMaster's end of the control connection (`penstock.network.control` is the slots').

A thread owns the socket. It answers heartbeats, notes when each slot was heard of, and lets
messages in and out, whatever the JobMaster does meanwhile: while that is busy, or held up by code
of the user, slots do not take the driver for dead. A JobMaster that stands still is reported.
"""

from __future__ import annotations

import contextlib
import pickle
import queue
import threading
from typing import Any, NamedTuple

import cloudpickle
import zmq

from penstock.common.clock import SystemClock
from penstock.common.listening import Listening
from penstock.network.binding import bind
from penstock.network.control import ALIVE, BEAT
from penstock.network.curve import Guard, new_keys, secure_server
from penstock.network.standstill import Standstill
from penstock.network.wakeup import Wakeup

_LOOK_MS = 100
_HELD_UP_MS = 1000


class Arrival(NamedTuple):
    """A message of a slot of `launch`, and when it came."""

    launch: int
    message: Any
    at_ms: int


class Heard(NamedTuple):
    """Signs of life."""

    slots: dict[tuple[int, int], int]
    """When which slot was heard of last, by launch and slot."""
    listened_ms: int
    """Up to when nothing was missed: the thread that listens may have been held up as well."""


class ControlServer:
    """The JobMaster's end. `wait` is called from its one thread, the rest from any."""

    def __init__(self, listening: Listening, name: str, still_after_ms: int) -> None:
        """A JobMaster that does not `wait` for so long is reported, by its name."""
        self._clock = SystemClock()
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
        self.address = bind(self._router, listening, "penstock.driver.port")
        self._wakeup = Wakeup()
        self._incoming: queue.SimpleQueue[tuple[bytes, bytes, int]] = queue.SimpleQueue()
        self._outgoing: queue.SimpleQueue[tuple[bytes, bytes]] = queue.SimpleQueue()
        self._news = threading.Event()
        self._lock = threading.Lock()
        self._heard: dict[tuple[int, int], int] = {}
        self._received_ms = self._listened_ms = self._clock.monotonic_ms()
        self._standstill = Standstill(name, still_after_ms, self._clock)
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="penstock-heartbeats", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def wake(self) -> None:
        """End a `wait`."""
        self._news.set()

    def send(self, launch: int, slot: int, message: Any) -> None:
        """Lost if the slot is not connected (any more)."""
        self._outgoing.put((f"{launch}.{slot}".encode(), cloudpickle.dumps(message)))
        self._wakeup.wake()

    def wait(self, timeout_ms: int) -> list[Arrival]:
        """The messages that arrived, after at most `timeout_ms`."""
        self._standstill.rests()
        self._news.wait(timeout_ms / 1000)
        self._news.clear()
        self._standstill.works()
        arrivals = []
        with contextlib.suppress(queue.Empty):
            while True:
                identity, payload, at_ms = self._incoming.get_nowait()
                arrivals.append(Arrival(_who(identity)[0], pickle.loads(payload), at_ms))
        return arrivals

    def heard(self) -> Heard:
        """Who was heard of since this was asked last; messages of them may not be taken yet."""
        with self._lock:
            heard, self._heard = self._heard, {}
            return Heard(heard, self._listened_ms)

    def close(self) -> None:
        """Send what is queued, and end."""
        self._stop.set()
        if self._thread.is_alive():
            self._wakeup.wake()
            self._thread.join()
        else:
            self._end()

    # --- the thread ---------------------------------------------------------------------------

    def _run(self) -> None:
        poller = zmq.Poller()
        for readable in (self._router, self._guard.socket, self._wakeup.fileno()):
            poller.register(readable, zmq.POLLIN)
        try:
            while not (self._stop.is_set() and self._outgoing.empty()):
                poller.poll(_LOOK_MS)
                self._wakeup.clear()
                self._guard.serve()
                self._send_queued()
                self._receive()
                self._standstill.look()
        finally:
            self._end()

    def _send_queued(self) -> None:
        with contextlib.suppress(queue.Empty):
            while True:
                self._route(*self._outgoing.get_nowait())

    def _route(self, identity: bytes, payload: bytes) -> None:
        with contextlib.suppress(zmq.ZMQError):
            self._router.send_multipart([identity, payload], zmq.NOBLOCK)

    def _receive(self) -> None:
        before_ms, now_ms = self._received_ms, self._clock.monotonic_ms()
        with contextlib.suppress(zmq.Again):
            while True:
                identity, kind, payload = self._router.recv_multipart(zmq.NOBLOCK)
                with self._lock:
                    self._heard[_who(identity)] = now_ms
                if kind == BEAT:
                    self._route(identity, ALIVE)
                self._incoming.put((identity, payload, now_ms))
                self._news.set()
        self._received_ms = now_ms
        if now_ms - before_ms < _HELD_UP_MS:
            # Else the whole process was: what came meanwhile may be here only with the next look.
            with self._lock:
                self._listened_ms = now_ms

    def _end(self) -> None:
        self._router.close()
        self._guard.close()
        self._context.term()
        self._wakeup.close()


def _who(identity: bytes) -> tuple[int, int]:
    launch, slot = identity.split(b".")
    return int(launch), int(slot)
