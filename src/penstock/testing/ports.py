"""Ports of this machine for servers that tests start."""

from __future__ import annotations

import contextlib
import random
import socket

_CHOICE = range(20_000, 32_000)
"""Below the ports that Linux gives to connections: none of them can come in between."""


def free_ports(count: int) -> list[int]:
    """So many different ports on loopback that nobody listens on now.

    They are chosen at random, so that tests beside each other hardly ever choose the same.
    """
    ports: list[int] = []
    # The system's randomness: a seed must not give the same ports to two processes.
    for port in random.SystemRandom().sample(_CHOICE, len(_CHOICE)):
        if len(ports) == count:
            return ports
        with socket.socket() as probe, contextlib.suppress(OSError):
            probe.bind(("127.0.0.1", port))
            ports.append(port)
    raise OSError(f"fewer than {count} of the ports {_CHOICE.start} to {_CHOICE.stop} are free")
