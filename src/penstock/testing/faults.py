"""Simulated storage, with the ways in which storage fails.

An operation may fail and have done nothing, fail and have done everything, be torn in the middle
of a write, or be the last thing that its process does.
"""

from __future__ import annotations

import itertools
import random
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

from penstock.common.filesystem import AppendStream, MemoryFileSystem, register_scheme
from penstock.errors import StorageError

T = TypeVar("T")
_filesystems: dict[str, FaultyFileSystem] = {}
_numbers = itertools.count()


class SimulatedCrash(BaseException):
    """The process that was running is no more."""


@dataclass(frozen=True)
class FaultRates:
    """How often what goes wrong; all zero is a run without faults."""

    storage_error: float = 0.0
    storage_crash: float = 0.0
    crash: float = 0.0
    freeze: float = 0.0
    lost_frame: float = 0.0
    user_error: float = 0.0
    budget: int = 0
    """Faults in one run; after that everything goes well, so that the run ends."""


class FaultyFileSystem(MemoryFileSystem):
    """A file system in memory whose operations may go wrong."""

    def __init__(self, rng: random.Random, rates: FaultRates) -> None:
        super().__init__()
        self._rng = rng
        self._rates = rates
        self.faults_left = rates.budget
        self.may_crash = False
        """Whether the process that is running now may die in the middle of an operation."""
        self.name = f"fs{next(_numbers)}"
        _filesystems[self.name] = self

    @property
    def uri(self) -> str:
        return f"sim://{self.name}"

    def forget(self) -> None:
        _filesystems.pop(self.name, None)

    def _faulty(self, action: Callable[[], T], torn: Callable[[], object] | None = None) -> T:
        chance = self._rng.random()
        if self.faults_left <= 0:
            return action()
        if chance < self._rates.storage_error:
            self.faults_left -= 1
            if self._rng.random() < 0.5:
                action()
            raise StorageError("simulated: the storage did not answer")
        if self.may_crash and chance < self._rates.storage_error + self._rates.storage_crash:
            self.faults_left -= 1
            moment = self._rng.randrange(3)
            if moment == 1 and torn is not None:
                torn()
            elif moment == 2:
                action()
            raise SimulatedCrash
        return action()

    def create(self, path: str, data: bytes) -> bool:
        return self._faulty(lambda: MemoryFileSystem.create(self, path, data))

    def append(self, path: str) -> AppendStream:
        stream = self._faulty(lambda: MemoryFileSystem.append(self, path))
        return _FaultyStream(self, stream)

    def read(self, path: str) -> bytes:
        return self._faulty(lambda: MemoryFileSystem.read(self, path))

    def rename(self, source: str, target: str) -> None:
        self._faulty(lambda: MemoryFileSystem.rename(self, source, target))

    def delete(self, path: str) -> None:
        self._faulty(lambda: MemoryFileSystem.delete(self, path))


class _FaultyStream:
    def __init__(self, owner: FaultyFileSystem, stream: AppendStream) -> None:
        self._owner = owner
        self._stream = stream

    def write(self, data: bytes) -> None:
        half = data[: len(data) // 2]
        self._owner._faulty(lambda: self._stream.write(data), lambda: self._stream.write(half))

    def sync(self) -> None:
        self._owner._faulty(self._stream.sync)

    def close(self) -> None:
        self._stream.close()


register_scheme("sim", lambda authority: _filesystems[authority])
