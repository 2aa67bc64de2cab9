"""Signs of life: which slots have fallen silent."""

from __future__ import annotations

from penstock.network.messages import Heartbeat


class Liveness:
    """Knows of one attempt who was heard of when."""

    def __init__(self, timeout_ms: int) -> None:
        self._timeout_ms = timeout_ms
        self._heard_ms: dict[int, int] = {}
        self._latest: dict[int, Heartbeat] = {}

    def heard(self, slot: int, at_ms: int) -> None:
        """The slot was heard of at that time, or later, if that is known already."""
        self._heard_ms[slot] = max(at_ms, self._heard_ms.get(slot, at_ms))

    def heartbeat(self, beat: Heartbeat, at_ms: int) -> None:
        self.heard(beat.slot, at_ms)
        self._latest[beat.slot] = beat

    def silent(self, now_ms: int) -> int | None:
        """A slot that has not been heard of for too long."""
        for slot, heard in self._heard_ms.items():
            if now_ms - heard >= self._timeout_ms:
                return slot
        return None

    def next_check_ms(self) -> int | None:
        return min(self._heard_ms.values()) + self._timeout_ms if self._heard_ms else None

    def latest(self) -> dict[int, Heartbeat]:
        """The last heartbeat of each slot."""
        return dict(self._latest)
