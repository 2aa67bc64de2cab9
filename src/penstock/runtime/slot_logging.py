"""What a slot logs, as `python.logging.*` says; the next job in this process may say otherwise."""

from __future__ import annotations

import logging
from collections.abc import Mapping

_FORMAT = "%(asctime)s %(levelname)s %(name)s: %(message)s"


class SlotLogging:
    """The levels of loggers while a slot runs."""

    def __init__(self) -> None:
        self._before: dict[str | None, int] = {}
        self._handler: logging.Handler | None = None

    def set(self, level: str | None, levels: Mapping[str, str]) -> None:
        """Log from `level` on, and by some loggers from levels of their own; to stderr.

        With neither, nothing is changed.
        """
        self.undo()
        wanted: dict[str | None, str] = dict(levels.items())
        if level is not None:
            wanted[None] = level
        for name, word in wanted.items():
            logger = logging.getLogger(name)
            self._before[name] = logger.level
            logger.setLevel(word)
        root = logging.getLogger()
        if wanted and not root.handlers:
            self._handler = logging.StreamHandler()
            self._handler.setFormatter(logging.Formatter(_FORMAT))
            root.addHandler(self._handler)

    def undo(self) -> None:
        """Leave `logging` as it was."""
        for name, level in self._before.items():
            logging.getLogger(name).setLevel(level)
        self._before.clear()
        if self._handler is not None:
            logging.getLogger().removeHandler(self._handler)
            self._handler = None
