"""Ports of this machine for servers that tests start."""

from __future__ import annotations

import random
import socket

_CHOICE = range(20_000, 32_000)
"""Below the ports that Linux gives to connections: none of them can come in between."""

_marks: list[socket.socket] = []
"""A UDP socket on every port that was handed out: servers of tests use none of those."""


def free_ports(count: int) -> list[int]:
    """So many different ports on loopback that nobody listens on now.

    A port is handed out once as long as this process lives, here and in all others that ask here:
    a server that was killed finds its port free when it is started again.
    """
    ports: list[int] = []
    # The system's randomness: a seed must not give the same ports to two processes.
    for port in random.SystemRandom().sample(_CHOICE, len(_CHOICE)):
        if _take(port):
            ports.append(port)
        if len(ports) == count:
            return ports
    raise OSError(f"fewer than {count} of the ports {_CHOICE.start} to {_CHOICE.stop} are free")


def _take(port: int) -> bool:
    mark = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    try:
        mark.bind(("127.0.0.1", port))
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", port))
    except OSError:
        mark.close()
        return False
    _marks.append(mark)
    return True
