"""What travels with a launch to every slot: the program, and how to reach the JobMaster."""

from __future__ import annotations

from dataclasses import dataclass

from penstock.common.listening import PortRange


@dataclass(frozen=True)
class SlotPayload:
    """Shipped once per launch; attempts in place use it again."""

    job_id: str
    launch: int
    control_address: str
    server_public: bytes
    client_public: bytes
    client_secret: bytes
    program: bytes
    """The ExecutionGraph, pickled."""
    heartbeat_interval_ms: int
    heartbeat_timeout_ms: int
    slot_ports: PortRange | None = None
    """The ports that slots listen on; None: any."""
