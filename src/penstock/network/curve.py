"""Who may connect: CURVE keys, checked for every connection.

All slots of an attempt share one key pair, made for it by the JobMaster: having it is being a
member. The guard answers ZeroMQ's question about each client; nobody else gets as far as sending.
"""

from __future__ import annotations

import zmq
from zmq.utils import z85

_ZAP = "inproc://zeromq.zap.01"


def new_keys() -> tuple[bytes, bytes]:
    """A public and a secret key."""
    public, secret = zmq.curve_keypair()
    return public, secret


def secure_server(socket: zmq.Socket[bytes], public: bytes, secret: bytes) -> None:
    socket.curve_publickey = public
    socket.curve_secretkey = secret
    socket.curve_server = True


def secure_client(
    socket: zmq.Socket[bytes], public: bytes, secret: bytes, server_public: bytes
) -> None:
    socket.curve_publickey = public
    socket.curve_secretkey = secret
    socket.curve_serverkey = server_public


class Guard:
    """Lets clients with one of the allowed keys in; one per ZeroMQ context."""

    def __init__(self, context: zmq.Context[zmq.Socket[bytes]], allowed: bytes) -> None:
        self._allowed = z85.decode(allowed)
        self.socket = context.socket(zmq.REP)
        self.socket.linger = 0
        self.socket.bind(_ZAP)
        self.refused = 0

    def serve(self) -> None:
        """Answer the questions that wait; call it when `socket` is readable."""
        while True:
            try:
                version, request, _, _, _, mechanism, *credentials = self.socket.recv_multipart(
                    zmq.NOBLOCK
                )
            except zmq.Again:
                return
            welcome = mechanism == b"CURVE" and credentials == [self._allowed]
            if not welcome:
                self.refused += 1
            status = (b"200", b"OK") if welcome else (b"400", b"unknown key")
            self.socket.send_multipart([version, request, *status, b"", b""])

    def close(self) -> None:
        self.socket.close(0)
