"""Writers and committers that a test drives by hand, whatever the sink."""

from __future__ import annotations

from typing import Any

from patience import until

from penstock.common.clock import SystemClock
from penstock.connectors.sink import Committer, CommitterContext, Sink, SinkWriter, WriterContext


def open_writer(sink: Sink, subtask: int = 0, attempt: int = 1) -> SinkWriter:
    context = WriterContext("job", "uid", attempt, subtask, 1, SystemClock(), None, None)
    writer = sink.create_writer(context)
    writer.open()
    return writer


def put(writer: SinkWriter, *records: Any) -> None:
    """Write records as a slot does: when there is room."""
    for record in records:
        until(writer.has_room, "room")
        writer.write(record)


def committer(sink: Sink, job: str = "job") -> Committer:
    made = sink.create_committer(CommitterContext(job, "uid"))
    assert made is not None
    return made


def begun(sink: Sink, job: str = "job") -> tuple[Committer, SinkWriter]:
    """A committer and a writer as an attempt has them that begins without a checkpoint."""
    end = committer(sink, job)
    end.abort_others([])
    return end, open_writer(sink)
