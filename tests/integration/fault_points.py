"""A sink whose processes die at the points of a two-phase commit that matter, once each on demand.

A test arms a point by making a file of its name; the process that reaches the point next takes the
file away and kills itself with kill -9.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

from penstock.common.plain import Plain
from penstock.connectors.sink import Committer, CommitterContext, Sink, SinkWriter, WriterContext

POINTS = {
    "prepared": "slot",  # between prepare and the checkpoint's metadata
    "completed": "driver",  # between metadata and commit
    "committing": "driver",  # one of several transactions is committed
    "committed": "driver",  # all are, and nobody knows
}
"""The points, and what dies there."""


class FaultPoints(Sink):
    """`sink`, with points in `folder`."""

    def __init__(self, sink: Sink, folder: str) -> None:
        self._sink = sink
        self._folder = folder
        self.timed = sink.timed

    def create_writer(self, context: WriterContext) -> SinkWriter:
        return _Writer(self._sink.create_writer(context), self._folder)

    def create_committer(self, context: CommitterContext) -> Committer:
        committer = self._sink.create_committer(context)
        assert committer is not None
        return _Committer(committer, self._folder)


class _Writer(SinkWriter):
    def __init__(self, writer: SinkWriter, folder: str) -> None:
        self._writer = writer
        self._folder = folder

    def open(self) -> None:
        self._writer.open()

    def write(self, value: Any) -> None:
        self._writer.write(value)

    def write_timed(self, value: Any, timestamp: int | None) -> None:
        self._writer.write_timed(value, timestamp)

    def has_room(self) -> bool:
        return self._writer.has_room()

    def flush(self) -> None:
        self._writer.flush()

    def prepare_commit(self) -> Callable[[], list[Plain]]:
        finish = self._writer.prepare_commit()

        def finished() -> list[Plain]:
            committables = finish()
            if committables:
                _die_at("prepared", self._folder)
            return committables

        return finished

    def close(self) -> None:
        self._writer.close()


class _Committer(Committer):
    def __init__(self, committer: Committer, folder: str) -> None:
        self._committer = committer
        self._folder = folder

    def commit(self, committables: list[Plain]) -> None:
        _die_at("completed", self._folder)
        if len(committables) > 1:
            self._committer.commit(committables[:1])
            _die_at("committing", self._folder)
        self._committer.commit(committables)
        _die_at("committed", self._folder)

    def abort_others(self, keep: list[Plain]) -> None:
        self._committer.abort_others(keep)

    def close(self) -> None:
        self._committer.close()


def _die_at(point: str, folder: str) -> None:
    try:
        (Path(folder) / point).unlink()
    except FileNotFoundError:
        return
    os.kill(os.getpid(), signal.SIGKILL)
