"""Where a process listens for others: the name that they are told, and what it binds."""

from __future__ import annotations

import ipaddress
from dataclasses import dataclass

PortRange = tuple[int, int]
"""The first and the last of the ports that may be used."""

_HIGHEST = 65535


@dataclass(frozen=True)
class Listening:
    """Where a process listens."""

    host: str
    """The name or address that others are told."""
    interface: str = ""
    """The address that is bound, if it is not the host's: behind NAT, in a container."""
    ports: PortRange | None = None
    """None: any free one."""

    def to_bind(self) -> str:
        """The address to bind: a name says nothing about interfaces, so it stands for all."""
        wanted = self.interface or self.host
        return wanted if is_address(wanted) else "*"


def is_address(text: str) -> bool:
    """Whether it is an address in numbers, of either version of IP."""
    try:
        ipaddress.ip_address(text.strip("[]"))
    except ValueError:
        return False
    return True


def parse_ports(text: str) -> PortRange:
    """`7000` or `7000-7010`."""
    first, dash, last = text.partition("-")
    try:
        ports = int(first), int(last if dash else first)
    except ValueError:
        raise ValueError("expected a port or a range of ports such as 7000-7010") from None
    if not 1 <= ports[0] <= ports[1] <= _HIGHEST:
        raise ValueError(f"expected ports between 1 and {_HIGHEST}, the lower one first")
    return ports
