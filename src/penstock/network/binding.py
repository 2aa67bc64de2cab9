"""Binds a socket where its process is to listen, and connects others to it."""

from __future__ import annotations

import zmq

from penstock.common.listening import Listening, is_address
from penstock.errors import AddressError


def bind(socket: zmq.Socket[bytes], listening: Listening, ports_key: str) -> str:
    """Bind `socket`; returns the address to tell others. `ports_key` is the setting of the ports.

    AddressError if the address is not this host's or no port is free.
    """
    interface = listening.to_bind()
    socket.setsockopt(zmq.IPV6, int(interface == "*" or ":" in interface))
    try:
        port = _bind(socket, _bracketed(interface), listening.ports)
    except zmq.ZMQError as error:
        if error.errno == zmq.EADDRINUSE and listening.ports is not None:
            first, last = listening.ports
            raise AddressError(
                f"no port from {first} to {last} is free at {interface}: set {ports_key} to others"
            ) from error
        raise AddressError(
            f"cannot listen at {interface}: {error.strerror}; set spark.driver.bindAddress to an "
            "address of the driver's host, and spark.driver.host to the one that slots can reach"
        ) from error
    return f"tcp://{_bracketed(listening.host)}:{port}"


def connect(socket: zmq.Socket[bytes], address: str) -> None:
    """Connect `socket` to an address that `bind` returned, or to a socket file."""
    host = address.removeprefix("tcp://").rpartition(":")[0]
    # A name may stand for an address of either version.
    socket.setsockopt(zmq.IPV6, int(not is_address(host) or ":" in host))
    socket.connect(address)


def _bind(socket: zmq.Socket[bytes], interface: str, ports: tuple[int, int] | None) -> int:
    if ports is None:
        return socket.bind_to_random_port(f"tcp://{interface}")
    first, last = ports
    for port in range(first, last):
        try:
            socket.bind(f"tcp://{interface}:{port}")
        except zmq.ZMQError as error:
            if error.errno != zmq.EADDRINUSE:
                raise
        else:
            return port
    socket.bind(f"tcp://{interface}:{last}")
    return last


def _bracketed(host: str) -> str:
    return f"[{host.strip('[]')}]" if ":" in host else host
