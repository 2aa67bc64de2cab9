"""Checkpoints that somebody asked for, and who is to hear what became of them."""

from __future__ import annotations

from collections.abc import Callable

from penstock.errors import CheckpointError

Answer = Callable[["int | None", "CheckpointError | None"], None]
"""Called once: with the id of the complete checkpoint, or with why there is none."""


class ManualRequests:
    """Requests wait for the next checkpoint that is triggered, and then for its end."""

    def __init__(self) -> None:
        self._waiting: list[Answer] = []
        self._under_way: dict[int, list[Answer]] = {}

    @property
    def waiting(self) -> bool:
        """Whether somebody waits for a checkpoint to be triggered."""
        return bool(self._waiting)

    def add(self, answer: Answer) -> None:
        self._waiting.append(answer)

    def triggered(self, checkpoint: int) -> None:
        if self._waiting:
            self._under_way[checkpoint], self._waiting = self._waiting, []

    def completed(self, checkpoint: int) -> None:
        for answer in self._under_way.pop(checkpoint, ()):
            answer(checkpoint, None)

    def failed(self, checkpoint: int, reason: str) -> None:
        for answer in self._under_way.pop(checkpoint, ()):
            answer(None, CheckpointError(f"checkpoint {checkpoint} failed: {reason}"))

    def fail_all(self, reason: str) -> None:
        """No checkpoint will come of any request."""
        for checkpoint in list(self._under_way):
            self.failed(checkpoint, reason)
        waiting, self._waiting = self._waiting, []
        for answer in waiting:
            answer(None, CheckpointError(f"no checkpoint was taken: {reason}"))
