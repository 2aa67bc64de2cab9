"""Generations: the objects by which drivers of one job id know of each other.

<dir>/<job-id>/generation-3          the third driver has taken the job over, or: the job has ended
<dir>/<job-id>/generation-3.start    the checkpoint that it began with

Each is created if absent and never changed. A driver that finds a higher number than its own has
been superseded. It always writes first and looks afterwards, so of two drivers at least one sees
the other: docs/adr/0010-generations-keep-drivers-apart.md.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from penstock.checkpoint.sealed import seal, unseal
from penstock.common.filesystem import FileSystem
from penstock.errors import StorageError, SupersededError

_CLAIM = re.compile(r"generation-(\d+)")
_START = re.compile(r"generation-(\d+)\.start")


@dataclass(frozen=True)
class Generations:
    """The generation objects in the directory of one job."""

    fs: FileSystem
    root: str

    def highest(self) -> int:
        return max(self._numbers(_CLAIM), default=0)

    def claim(self) -> int:
        """Take the job over: from now on no older driver completes or commits anything."""
        while True:
            mine = self.highest() + 1
            if self._create(f"generation-{mine}", {"ended": False}):
                return mine

    def check(self, mine: int) -> None:
        """SupersededError if another driver has taken the job over, or ended it."""
        highest = self.highest()
        if highest > mine:
            raise self._superseded(mine, highest)

    def _superseded(self, mine: int, by: int) -> SupersededError:
        return SupersededError(
            f"the job was taken over: generation {by} of its drivers is at work in "
            f"{self.root}, and this one is generation {mine}; it commits nothing any more"
        )

    def note_start(self, mine: int, checkpoint: int) -> None:
        """Note where generation `mine` begins; the first note stands."""
        self._create(f"generation-{mine}.start", {"checkpoint": checkpoint})

    def starts(self) -> dict[int, int]:
        """The checkpoint that each generation began with; the end of a job begins with none."""
        starts = {}
        for number in self._numbers(_START):
            start = self._read_if_there(f"generation-{number}.start")
            if start is not None:
                starts[number] = int(start["checkpoint"])
        for number in self._numbers(_CLAIM):
            claim = None if number in starts else self._read_if_there(f"generation-{number}")
            if claim is not None and claim["ended"]:
                starts[number] = 0
        return starts

    def end(self, mine: int) -> None:
        """Nobody goes on from here: what follows under this job id is a new beginning.

        SupersededError if another driver has taken the job over before.
        """
        mark = f"generation-{mine + 1}"
        if self._create(mark, {"ended": True}):
            return
        # The mark may be our own, by an answer that was lost; then nobody may have come since.
        found, highest = self._read_if_there(mark), self.highest()
        if found is None or not found["ended"] or highest > mine + 1:
            raise self._superseded(mine, max(highest, mine + 1))

    def forget(self, upto: int) -> None:
        """Delete the objects of all generations up to this one."""
        for name in self.fs.list(self.root):
            match = _CLAIM.match(name)
            if match and int(match[1]) <= upto:
                self.fs.delete(f"{self.root}/{name}")

    def _numbers(self, pattern: re.Pattern[str]) -> list[int]:
        matches = (pattern.fullmatch(name) for name in self.fs.list(self.root))
        return [int(match[1]) for match in matches if match]

    def _create(self, name: str, content: dict[str, int] | dict[str, bool]) -> bool:
        return self.fs.create(f"{self.root}/{name}", seal(content))

    def _read_if_there(self, name: str) -> dict[str, int] | None:
        """An object that was listed; None if a driver that ends the job has deleted it since."""
        try:
            return self._read(name)
        except StorageError as error:
            if isinstance(error.__cause__, FileNotFoundError):
                return None
            raise

    def _read(self, name: str) -> dict[str, int]:
        path = f"{self.root}/{name}"
        return unseal(self.fs.read(path), path)
