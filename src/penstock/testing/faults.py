"""Faults: which kinds there are, how many a run may have, and storage that suffers from them.

A storage operation may fail and have done nothing, fail and have done everything, fail and be done
*later*, be done *twice* (a client that heard no answer asks again, and gets the second one), be
torn in the middle of a write, or be the last thing that its process does. What a process has
written and not synced is lost with the process, in part or as a whole. A file that is open stays
open under its new name, or under none, as on any POSIX file system.
"""

from __future__ import annotations

import itertools
import random
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

from penstock.common.filesystem import (
    AppendStream,
    Content,
    MemoryFileSystem,
    parts_of,
    register_scheme,
)
from penstock.errors import StorageError

T = TypeVar("T")
_filesystems: dict[str, FaultyFileSystem] = {}
_numbers = itertools.count()


class SimulatedCrash(BaseException):
    """The process that was running is no more."""


@dataclass(frozen=True)
class FaultRates:
    """How often what goes wrong: per operation, per frame, or per tick of the simulation."""

    storage_error: float = 0.0
    manifest_error: float = 0.0
    """Errors where a checkpoint's manifest is written or abandoned, which decides over it."""
    upkeep: float = 0.0
    """Errors and crashes where segments are merged or deleted."""
    twice: float = 0.0
    """What changes files is done twice, and the second answer counts."""
    storage_crash: float = 0.0
    crash_at: int | None = None
    """In the storage operation of a slot with this number, counted over the run, it dies."""
    expiry: float = 0.0
    """A checkpoint that is under way is given up."""
    crash: float = 0.0
    crash_soon: float = 0.0
    """For every slot that hears of a complete checkpoint: one dies soon after."""
    freeze: float = 0.0
    lost_frame: float = 0.0
    slow: float = 0.0
    """Messages between two ends, or the storage for one process, stand still for a while."""
    budget: int = 0
    """Faults in one run; after that everything goes well, so that the run ends."""


class FaultBudget:
    """The faults that a run has left, and those that it had."""

    def __init__(self, left: int) -> None:
        self.left = left
        self.log: list[str] = []

    def spend(self, what: str) -> None:
        self.left -= 1
        self.log.append(what)


class FaultyFileSystem(MemoryFileSystem):
    """A file system in memory whose operations may go wrong."""

    def __init__(self, rng: random.Random, rates: FaultRates) -> None:
        super().__init__()
        self._rng = rng
        self._rates = rates
        self._slot_operations = 0
        self._streams: dict[str, _FaultyStream] = {}
        self.budget = FaultBudget(rates.budget)
        self.armed = False
        """Nothing goes wrong before the run begins."""
        self.may_crash = False
        """Whether the process that is running now may die in the middle of an operation."""
        self.later: Callable[[Callable[[], object]], None] = lambda action: None
        """Does something at a later time: an operation that was given up and comes true."""
        self.before_call: Callable[[str], None] | None = None
        """Called before every operation of a driver, with what it is: others may act now."""
        self.decisions: dict[str, bytes] = {}
        """What decides between drivers: manifests and generations, as they were first created."""
        self.failed_cleanups = 0
        """Listings and deletions that went wrong: something may be left over, and that is all."""
        self.came_late: set[str] = set()
        """Files that came true after their writer gave up: perhaps after all was cleaned up."""
        self.name = f"fs{next(_numbers)}"
        _filesystems[self.name] = self

    @property
    def uri(self) -> str:
        return f"sim://{self.name}"

    def forget(self) -> None:
        _filesystems.pop(self.name, None)

    def faulty(
        self,
        what: str,
        action: Callable[[], T],
        torn: Callable[[], object] | None = None,
        late: Callable[[], object] | None = None,
    ) -> T:
        """Do `action`, unless the seed has something else in mind."""
        if self.before_call is not None:
            self.before_call(what)
        if not self.armed:
            return action()
        doomed = self._is_doomed()
        if self.budget.left <= 0:
            return action()
        upkeep = self._rates.upkeep if _is_upkeep(what) else 0.0
        crashes = self._rates.storage_crash + upkeep
        if doomed or (self.may_crash and self._rng.random() < crashes):
            self._die(what, action, torn)
        decides = what.startswith("create") and what.endswith("/_metadata")
        errors = self._rates.storage_error + (self._rates.manifest_error if decides else 0.0)
        if self._rng.random() < errors + upkeep:
            self._err(what, action, late)
        if late is not None and self._rates.twice and self._rng.random() < self._rates.twice:
            self.budget.spend(f"twice: {what}")
            action()
        return action()

    def random_below(self, limit: int) -> int:
        return self._rng.randrange(limit)

    def _is_doomed(self) -> bool:
        if not self.may_crash:
            return False
        self._slot_operations += 1
        return self._slot_operations == self._rates.crash_at

    def _die(
        self, what: str, action: Callable[[], object], torn: Callable[[], object] | None
    ) -> None:
        moment = self._rng.randrange(3)
        self.budget.spend(f"crash {('before', 'during', 'after')[moment]} {what}")
        if moment == 1 and torn is not None:
            torn()
        elif moment == 2:
            action()
        raise SimulatedCrash

    def _err(
        self, what: str, action: Callable[[], object], late: Callable[[], object] | None
    ) -> None:
        outcome = self._rng.choice(("not done", "done", "not done" if late is None else "late"))
        self.budget.spend(f"storage error: {what} {outcome}")
        if what.startswith(("delete", "list")) or "/generation-" in what:
            self.failed_cleanups += 1
        if outcome == "done":
            action()
        elif outcome == "late" and late is not None:
            self.later(late)
        raise StorageError(f"simulated: the storage did not answer to {what}")

    def create(self, path: str, content: Content) -> bool:
        # It may be made later, or twice.
        data = b"".join(parts_of(content))

        def make() -> bool:
            created = MemoryFileSystem.create(self, path, data)
            if created and (path.endswith("/_metadata") or "/generation-" in path):
                self.decisions.setdefault(path, self.files[path])
            return created

        def make_late() -> None:
            if make():
                self.came_late.add(path)

        return self.faulty(f"create {path}", make, late=make_late)

    def append(self, path: str) -> AppendStream:
        def open_stream() -> AppendStream:
            if not MemoryFileSystem.create(self, path, b""):
                raise StorageError(f"cannot open {path}: it exists")
            stream = self._streams[path] = _FaultyStream(self, path)
            return stream

        return self.faulty(f"open {path}", open_stream)

    def read(self, path: str) -> bytes:
        return self.faulty(f"read {path}", lambda: MemoryFileSystem.read(self, path))

    def rename(self, source: str, target: str) -> None:
        def move() -> None:
            if source in self.files:
                # A file system in memory would move on top of a file; that must never happen.
                assert target not in self.files, f"{target} is written twice"
            MemoryFileSystem.rename(self, source, target)
            stream = self._streams.pop(source, None)
            if stream is not None:
                self._streams[target] = stream
                stream.path = target

        def move_if_there() -> None:
            if source in self.files:
                move()

        self.faulty(f"rename {source}", move, late=move_if_there)

    def exists(self, path: str) -> bool:
        return self.faulty(f"look for {path}", lambda: MemoryFileSystem.exists(self, path))

    def list(self, directory: str) -> list[str]:
        return self.faulty(f"list {directory}", lambda: MemoryFileSystem.list(self, directory))

    def sizes(self, directory: str) -> dict[str, int]:
        return self.faulty(f"list {directory}", lambda: MemoryFileSystem.sizes(self, directory))

    def delete(self, path: str) -> None:
        def remove() -> None:
            MemoryFileSystem.delete(self, path)
            self.came_late.discard(path)
            stream = self._streams.pop(path, None)
            if stream is not None:
                stream.path = None

        self.faulty(f"delete {path}", remove, late=remove)


def _is_upkeep(what: str) -> bool:
    return what.endswith("-merged") or (what.startswith("delete") and "/shared/" in what)


class _FaultyStream:
    """A file that is being written; what is not synced is in the process alone, or not."""

    def __init__(self, owner: FaultyFileSystem, path: str) -> None:
        self._owner = owner
        self._unsynced = b""
        self.path: str | None = path
        """Where the file is now; None when it was deleted."""

    def write(self, data: bytes) -> None:
        self._unsynced += data
        # Buffers drain when they like; a crash keeps what has drained and no more.
        drained = self._owner.random_below(len(self._unsynced) + 1)
        self._owner.faulty(f"write {self.path}", lambda: self._drain(drained))

    def sync(self) -> None:
        whole = len(self._unsynced)
        self._owner.faulty(
            f"sync {self.path}", lambda: self._drain(whole), lambda: self._drain(whole // 2)
        )

    def close(self) -> None:
        self._drain(len(self._unsynced))

    def _drain(self, count: int) -> None:
        data, self._unsynced = self._unsynced[:count], self._unsynced[count:]
        if self.path is not None:
            self._owner.files[self.path] += data


register_scheme("sim", lambda authority: _filesystems[authority])
