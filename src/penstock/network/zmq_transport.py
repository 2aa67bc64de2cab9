"""The network between slots: ZeroMQ, one connection per ordered pair.

Nothing is bounded here (high-water mark 0), because credits bound what is under way. ZeroMQ would
reconnect silently and lose what was in between, so a lost connection is an error. Slots on other
machines come in by tcp, encrypted, with the attempt's keys; those on this one by a socket file.
"""

from __future__ import annotations

import threading
from typing import Any

import zmq
from zmq.utils.monitor import recv_monitor_message

from penstock.common.listening import Listening
from penstock.errors import ChannelBrokenError
from penstock.network.binding import bind, connect
from penstock.network.curve import Guard, secure_client, secure_server
from penstock.network.frames import Frame, decode_frame, encode_frame
from penstock.network.local_endpoint import LocalEndpoint, is_reachable
from penstock.network.wakeup import Wakeup

_RECEIVE_AT_ONCE = 64
_PING_MS = 5_000
_DEAD_AFTER_MS = 30_000
"""A link whose other end has not answered for so long is dead: far longer than what a slow link has
under way in the buffers of the system, which goes before."""
_OR_LOCAL = " or ipc://"
"""Between the two addresses of a slot: for everybody, and for its own machine."""
# Not the handshake's failures: what is no ZeroMQ at all is dropped without such an event.
_CONNECTIONS = zmq.EVENT_ACCEPTED | zmq.EVENT_HANDSHAKE_SUCCEEDED | zmq.EVENT_DISCONNECTED


class ZmqTransport:
    """One slot's sockets for one attempt. All methods are called from the slot's thread."""

    def __init__(self, listening: Listening, public: bytes, secret: bytes, wakeup: Wakeup) -> None:
        self._public, self._secret = public, secret
        self._context = zmq.Context()
        self._wakeup = wakeup
        self._guard_stop = threading.Event()
        self._guard = Guard(self._context, public)
        self._guard_thread = threading.Thread(
            target=self._serve, name="penstock-guard", daemon=True
        )
        self._guard_thread.start()
        self._pull = self._new_pull()
        secure_server(self._pull, public, secret)
        self._pull_monitor = self._pull.get_monitor_socket(_CONNECTIONS)
        self.address = bind(self._pull, listening, "penstock.slot.ports")
        self._pulls = [self._pull]
        self._endpoint = LocalEndpoint()
        if self._endpoint.path is not None:
            local = self._new_pull()
            local.bind(f"ipc://{self._endpoint.path}")
            self._pulls.append(local)
            self.address += f"{_OR_LOCAL}{self._endpoint.path}"
        self._push: dict[int, zmq.Socket[bytes]] = {}
        self._push_monitors: dict[int, zmq.Socket[bytes]] = {}
        self._events = dict.fromkeys(
            (zmq.EVENT_ACCEPTED, zmq.EVENT_HANDSHAKE_SUCCEEDED, zmq.EVENT_DISCONNECTED), 0
        )
        self._poller = zmq.Poller()
        for pull in self._pulls:
            self._poller.register(pull, zmq.POLLIN)
        self._poller.register(self._pull_monitor, zmq.POLLIN)
        self._poller.register(wakeup.fileno(), zmq.POLLIN)

    def _new_pull(self) -> zmq.Socket[bytes]:
        pull = self._context.socket(zmq.PULL)
        pull.linger = 0
        pull.rcvhwm = 0
        return pull

    def _serve(self) -> None:
        """Answer for the guard in a thread of its own: the slot's may be busy with user code."""
        poller = zmq.Poller()
        poller.register(self._guard.socket, zmq.POLLIN)
        while not self._guard_stop.is_set():
            if poller.poll(100):
                self._guard.serve()
        self._guard.close()

    def connect(self, peers: dict[int, str]) -> None:
        for slot, address in peers.items():
            socket = self._context.socket(zmq.PUSH)
            socket.linger = 0
            socket.sndhwm = 0
            remote, _, local = address.partition(_OR_LOCAL)
            if local and is_reachable(local):
                address = f"ipc://{local}"
            else:
                address = remote
                secure_client(socket, self._public, self._secret, self._public)
                _watch(socket)
            monitor = socket.get_monitor_socket(zmq.EVENT_DISCONNECTED)
            connect(socket, address)
            self._push[slot] = socket
            self._push_monitors[slot] = monitor
            self._poller.register(monitor, zmq.POLLIN)

    def send(self, slot: int, frame: Frame) -> None:
        self._push[slot].send_multipart(encode_frame(frame), zmq.NOBLOCK)

    def receive(self) -> list[Frame]:
        frames: list[Frame] = []
        # In turns, so that neither kind of peer is heard before the other each time.
        self._pulls.reverse()
        for pull in self._pulls:
            while len(frames) < _RECEIVE_AT_ONCE:
                try:
                    parts = pull.recv_multipart(zmq.NOBLOCK)
                except zmq.Again:
                    break
                frames.append(decode_frame(parts))
        return frames

    def wait(self, timeout_ms: int | None) -> None:
        """Sleep until something arrives, somebody wakes, or time is up."""
        for socket, _ in self._poller.poll(timeout_ms):
            if socket == self._wakeup.fileno():
                self._wakeup.clear()
            elif socket is self._pull_monitor:
                self._connection(recv_monitor_message(self._pull_monitor))
            elif socket not in self._pulls:
                self._disconnected(socket)

    def _connection(self, event: Any) -> None:
        self._events[event["event"]] += 1

    def _disconnected(self, monitor: object) -> None:
        for slot, known in self._push_monitors.items():
            if known is monitor:
                self._poller.unregister(known)
                raise ChannelBrokenError(f"the connection to slot {slot} was lost")

    def strangers(self) -> int:
        """How many were cut off before their handshake succeeded.

        A success does not say whose it was. But those who left are strangers as long as no member
        has left, and those who were accepted and did not succeed are strangers as long as nobody
        is in the middle of it; the smaller number is right in both cases.
        """
        failed = self._events[zmq.EVENT_ACCEPTED] - self._events[zmq.EVENT_HANDSHAKE_SUCCEEDED]
        return min(self._events[zmq.EVENT_DISCONNECTED], max(0, failed))

    def close(self) -> None:
        self._guard_stop.set()
        self._guard_thread.join()
        for socket in (*self._pulls, *self._push.values()):
            socket.disable_monitor()
            socket.close(0)
        self._endpoint.close()
        self._pull_monitor.close(0)
        for monitor in self._push_monitors.values():
            monitor.close(0)
        self._context.term()


def _watch(socket: zmq.Socket[bytes]) -> None:
    """Notice when the way to a peer is dead and nobody says so: cables, routers, machines.

    Only senders ask, between two frames. A receiver that asked would not hear the answer before
    the frame under way has come as a whole, and a large one takes its time on a slow link.
    """
    socket.heartbeat_ivl = _PING_MS
    socket.heartbeat_timeout = _DEAD_AFTER_MS
    # In the middle of a frame it is the system that asks.
    socket.tcp_keepalive = 1
    socket.tcp_keepalive_idle = socket.tcp_keepalive_intvl = max(1, _PING_MS // 1000)
    socket.tcp_keepalive_cnt = max(1, _DEAD_AFTER_MS // max(1, _PING_MS))
    socket.tcp_maxrt = _DEAD_AFTER_MS
