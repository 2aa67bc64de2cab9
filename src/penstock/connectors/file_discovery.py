"""Folders that are watched: every file that appears is read once.

A file is its path, its modification time and its size. What was handed out is part of the
checkpoint, so after a restart no file is read again and none is missed. A file that is replaced
by another is a new file. One that is still being written is left alone: a file is taken when it
has not changed for an interval. Files that were deleted are forgotten, so that the memory of a job
that runs for years does not grow with all it ever read.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass

from penstock.common.plain import Plain
from penstock.connectors.file_listing import FoundFile, list_files
from penstock.connectors.source import SplitEnumerator


@dataclass(frozen=True)
class _Look:
    """What one look at the folders found."""

    splits: list[Plain]
    """Of the files that are new and settled."""
    seen: dict[str, tuple[int, int]]
    """All files that have been handed out by then and are still there, with their versions."""
    fresh: dict[str, tuple[int, int]]
    """The files that were new in this look."""


class DiscoveringEnumerator(SplitEnumerator):
    """Looks at the folders once per round of questions; a reader that got nothing asks again."""

    def __init__(
        self,
        paths: list[str],
        cut: Callable[[list[str]], list[Plain]],
        interval_ms: int,
        restored: Plain | None,
        now_ns: Callable[[], int] = time.time_ns,
    ) -> None:
        state = restored or {"seen": {}, "left": []}
        self._paths = paths
        self._cut = cut
        self._interval_ms = interval_ms
        self._now_ns = now_ns
        self._seen: dict[str, tuple[int, int]] = {
            path: (modified_ns, size) for path, (modified_ns, size) in state["seen"].items()
        }
        self._left: deque[Plain] = deque(state["left"])
        self._fresh: dict[str, tuple[int, int]] = {}
        self._answered: set[int] | None = None
        self._waiting: set[int] = set()

    def must_look(self, subtask: int) -> bool:
        # All readers ask once per interval; one look serves them all.
        return not self._left and (self._answered is None or subtask in self._answered)

    def next_splits(self, subtask: int) -> list[Plain] | None:
        if self._answered is not None:
            self._answered.add(subtask)
        if not self._left:
            self._waiting.add(subtask)
            return []
        self._waiting.discard(subtask)
        return [self._left.popleft()]

    def ask_again_ms(self, subtask: int) -> int | None:
        return self._interval_ms if subtask in self._waiting else None

    def look(self) -> _Look:
        found = list_files(self._paths)
        new = sorted(
            (file for file in found if self._seen.get(file.path) != _version(file)),
            key=lambda file: (file.modified_ns, file.path),
        )
        ready = [file for file in new if self._is_settled(file)]
        known = {file.path for file in found}
        seen = {path: version for path, version in self._seen.items() if path in known}
        seen.update((file.path, _version(file)) for file in ready)
        fresh = {file.path: _version(file) for file in new}
        return _Look(self._cut([file.path for file in ready]), seen, fresh)

    def found(self, result: _Look) -> None:
        self._left.extend(result.splits)
        self._seen, self._fresh = result.seen, result.fresh
        self._answered = set()

    def _is_settled(self, file: FoundFile) -> bool:
        """Whether nobody seems to be writing it any more."""
        old = self._now_ns() - file.modified_ns >= self._interval_ms * 1_000_000
        return old or self._fresh.get(file.path) == _version(file)

    def snapshot(self) -> Plain:
        seen = {path: list(version) for path, version in self._seen.items()}
        return {"seen": seen, "left": list(self._left)}


def _version(file: FoundFile) -> tuple[int, int]:
    return file.modified_ns, file.size
