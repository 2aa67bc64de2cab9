"""A checkpoint behind which the job stands still, for what comes next to begin where it ended.

It waits until no other checkpoint is under way and keeps others from beginning. When it is given
up, every subtask goes on as if it had been any checkpoint.
"""

from __future__ import annotations

from penstock.errors import CheckpointError
from penstock.jobmanager.manual_requests import Answer


class Holding:
    """The holding checkpoint that somebody asked for; one at a time."""

    def __init__(self) -> None:
        self._answer: Answer | None = None
        self._checkpoint: int | None = None

    @property
    def asked(self) -> bool:
        """Whether one is wanted or under way: nothing else may be triggered."""
        return self._answer is not None

    @property
    def waiting(self) -> bool:
        """Whether one is wanted and not yet under way."""
        return self.asked and self._checkpoint is None

    def ask(self, answer: Answer) -> None:
        self._answer = answer

    def triggered(self, checkpoint: int) -> None:
        self._checkpoint = checkpoint

    def is_held(self, checkpoint: int) -> bool:
        """Whether this is the one."""
        return self.asked and checkpoint == self._checkpoint

    def completed(self, checkpoint: int) -> None:
        self._say(checkpoint, None)

    def failed(self, reason: str) -> None:
        """It will never be complete, or is none that anything can go on from."""
        if self.asked:
            self._say(None, CheckpointError(reason))

    def _say(self, checkpoint: int | None, error: CheckpointError | None) -> None:
        answer, self._answer, self._checkpoint = self._answer, None, None
        assert answer is not None
        answer(checkpoint, error)
