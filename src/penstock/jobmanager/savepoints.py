"""Savepoints that somebody asked for, and who is to hear what became of them.

A savepoint is a checkpoint like any other, of which every operator also writes a copy with all of
its state to a place of the user's. The job goes on from the checkpoint and never reads the copy.
What the checkpoint covers is committed, and then whoever asked hears where the copy is.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from penstock.checkpoint.handles import SubtaskSnapshot
from penstock.checkpoint.savepoints import SavepointLocation
from penstock.errors import CheckpointError
from penstock.graph.execution_graph import SubtaskId

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


@dataclass
class UnderWay:
    """A savepoint whose checkpoint is under way."""

    request: SavepointRequest
    location: SavepointLocation
    copies: dict[SubtaskId, SubtaskSnapshot] = field(default_factory=dict)
    """The parts of the copy that are written."""


class Savepoints:
    """Requests wait for room, then for the end of their checkpoint and the commit."""

    def __init__(self) -> None:
        self._waiting: list[SavepointRequest] = []
        self._under_way: dict[int, UnderWay] = {}

    @property
    def waiting(self) -> bool:
        return bool(self._waiting)

    @property
    def stopping(self) -> bool:
        """Whether the job is about to stop: nothing else may be triggered."""
        return any(savepoint.request.stop for savepoint in self._under_way.values())

    def add(self, request: SavepointRequest) -> None:
        self._waiting.append(request)

    def next(self) -> SavepointRequest:
        return self._waiting.pop(0)

    def triggered(
        self, checkpoint: int, request: SavepointRequest, location: SavepointLocation
    ) -> None:
        self._under_way[checkpoint] = UnderWay(request, location)

    def get(self, checkpoint: int) -> UnderWay | None:
        return self._under_way.get(checkpoint)

    def copied(self, checkpoint: int, subtask: SubtaskId, snapshot: SubtaskSnapshot) -> None:
        """A subtask has written its part of the copy."""
        if checkpoint in self._under_way:
            self._under_way[checkpoint].copies[subtask] = snapshot

    def completed(self, checkpoint: int) -> None:
        """All that this checkpoint covers is committed; whoever asked for a savepoint hears."""
        found = self._under_way.pop(checkpoint, None)
        if found is not None:
            found.request.answer(found.location.path, None)

    def failed(self, checkpoint: int, reason: str) -> None:
        found = self._under_way.pop(checkpoint, None)
        if found is not None:
            found.request.answer(None, CheckpointError(f"the savepoint failed: {reason}"))

    def fail_all(self, reason: str) -> None:
        """No savepoint will come of any request."""
        for checkpoint in list(self._under_way):
            self.failed(checkpoint, reason)
        waiting, self._waiting = self._waiting, []
        for request in waiting:
            request.answer(None, CheckpointError(f"no savepoint was taken: {reason}"))
