"""What a slot does before it runs: which operator it restores or opens, and how much it has read.

The loop does the work and notes it here; the thread that sends heartbeats reads it. A heartbeat
also leaves whenever a twentieth of the state has been read, so that a restore that is quick shows
how it goes on too.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from penstock.checkpoint.handles import SubtaskSnapshot
from penstock.checkpoint.store import SegmentStore
from penstock.common.filesystem import Content
from penstock.network.messages import Starting

_STEPS = 20


class Startup:
    """How far a slot is in one attempt."""

    def __init__(self, restored: Iterable[SubtaskSnapshot], beat: Callable[[], None]) -> None:
        """`beat` sends a heartbeat."""
        handles = (handle for snapshot in restored for handle in snapshot.segments())
        self._size = sum(handle.size for handle in handles)
        self._read = 0
        self._told = 0
        self._what = ""
        self._beat = beat
        self.path = ""
        """The file that was read last."""

    def lets_go(self) -> None:
        """What the attempt before had in memory goes first."""
        self._what = "letting go of the state of the attempt before"

    def restores(self, operator: str) -> None:
        """The state of an operator is read from now on."""
        self._what = f"restoring {operator}"

    def opens(self, operator: str) -> None:
        """The function of an operator is opened from now on."""
        self._what = f"opening {operator}"

    def waits(self) -> None:
        """Others have to do something now."""
        self._what = ""

    def has_read(self, size: int) -> None:
        """So many bytes more of the state are here."""
        self._read += size
        if _STEPS * (self._read - self._told) >= self._size:
            self._told = self._read
            self._beat()

    def seen(self) -> Starting | None:
        """How far it is now; None while it waits."""
        if not self._what:
            return None
        return Starting(self._what, self._read, self._size)


class CountedSegments:
    """Segments of a store, to be read; every read is counted."""

    def __init__(self, store: SegmentStore, startup: Startup) -> None:
        self._store = store
        self._startup = startup

    def write_segment(self, name: str, content: Content) -> str:
        return self._store.write_segment(name, content)

    def read_segment(self, path: str) -> bytes:
        self._startup.path = path
        return self._counted(self._store.read_segment(path))

    def read_part(self, path: str, start: int, size: int) -> bytes:
        self._startup.path = path
        return self._counted(self._store.read_part(path, start, size))

    def _counted(self, data: bytes) -> bytes:
        self._startup.has_read(len(data))
        return data
