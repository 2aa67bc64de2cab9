"""Savepoints that somebody asked for, and who is to hear what became of them.

A savepoint is a checkpoint for which every operator writes all of its state to a place of its own.
The job neither restores from it nor builds upon it, and commits nothing because of it. A job that
*stops* with one is different: its last output is committed, so the savepoint is a checkpoint of
the job too until that is done.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from penstock.checkpoint.savepoints import SavepointLocation
from penstock.errors import CheckpointError

SavepointAnswer = Callable[["str | None", "CheckpointError | None"], None]
"""Called once: with the path of the savepoint, or with why there is none."""


@dataclass(frozen=True)
class SavepointRequest:
    """Somebody asks for a savepoint in a new folder of `directory`."""

    directory: str
    answer: SavepointAnswer
    stop: bool = False
    """End the job with it."""
    drain: bool = False
    """Let event time come to its end before: every timer fires, every window closes."""


class Savepoints:
    """Requests wait for room, then for the end of their checkpoint, and one that stops the job
    for the commit."""

    def __init__(self) -> None:
        self._waiting: list[SavepointRequest] = []
        self._under_way: dict[int, tuple[SavepointRequest, SavepointLocation]] = {}
        self._stopped_with = 0

    @property
    def waiting(self) -> bool:
        return bool(self._waiting)

    @property
    def stopping(self) -> bool:
        """Whether the job is about to stop: nothing else may be triggered."""
        return any(request.stop for request, _ in self._under_way.values())

    def add(self, request: SavepointRequest) -> None:
        self._waiting.append(request)

    def next(self) -> SavepointRequest:
        return self._waiting.pop(0)

    def triggered(
        self, checkpoint: int, request: SavepointRequest, location: SavepointLocation
    ) -> None:
        self._under_way[checkpoint] = (request, location)

    def get(self, checkpoint: int) -> tuple[SavepointRequest, SavepointLocation] | None:
        return self._under_way.get(checkpoint)

    def completed(self, checkpoint: int) -> None:
        request, location = self._under_way.pop(checkpoint)
        request.answer(location.path, None)

    def written(self, checkpoint: int) -> bool:
        """This checkpoint is complete; whether the job stops with it."""
        if checkpoint not in self._under_way:
            return False
        self._stopped_with = checkpoint
        return True

    def stopped(self) -> None:
        """The last output is committed: the job has stopped, with a savepoint or without."""
        if self._stopped_with in self._under_way:
            self.completed(self._stopped_with)

    def failed(self, checkpoint: int, reason: str) -> None:
        found = self._under_way.pop(checkpoint, None)
        if found is not None:
            found[0].answer(None, CheckpointError(f"the savepoint failed: {reason}"))

    def fail_all(self, reason: str) -> None:
        """No savepoint will come of any request."""
        for checkpoint in list(self._under_way):
            self.failed(checkpoint, reason)
        waiting, self._waiting = self._waiting, []
        for request in waiting:
            request.answer(None, CheckpointError(f"no savepoint was taken: {reason}"))
