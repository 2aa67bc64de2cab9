"""The contract of a sink: a writer in every slot, and a committer for what the writers prepared.

A plain sink only has a writer. A transactional one makes its output visible in two steps: at the
barrier of a checkpoint the writer *prepares* what it wrote and describes it by committables, which
are plain values (see `penstock.common.plain`) and part of the checkpoint; once the checkpoint is
complete, the committer makes them visible. Committing is idempotent and works from any process,
because after a crash somebody else does it again.

A writer that is enough for many cases::

    class Count(Sink):
        def create_writer(self, context):
            return CountWriter()

    class CountWriter(SinkWriter):
        def __init__(self):
            self.count = 0

        def write(self, value):
            self.count += 1
"""

from __future__ import annotations

import sys
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from penstock.common.clock import Clock
from penstock.common.plain import Plain
from penstock.common.typeinfo import TypeInformation
from penstock.metrics import MetricGroup


def _nobody() -> None:
    """Wakes nobody: for a writer that no slot waits for."""


@dataclass(frozen=True)
class WriterContext:
    """What a writer may know of where it runs."""

    job_id: str
    uid: str
    attempt: int
    subtask: int
    parallelism: int
    clock: Clock
    emit: Callable[[list[Any], bool], None]
    """Sends values to the client; the flag says that they wait for a checkpoint to complete."""
    emit_room: Callable[[], bool]
    """Whether the client keeps up with what was emitted."""
    wake: Callable[[], None] = _nobody
    """Tells the slot, from any thread, that `has_room` may have another answer now."""
    metrics: MetricGroup = field(default_factory=MetricGroup)
    """Where the writer registers metrics of its own; change them in the slot's thread only."""


@dataclass(frozen=True)
class CommitterContext:
    """What a committer may know of the job."""

    job_id: str
    uid: str
    last_attempt: int = sys.maxsize
    """Attempts with higher numbers are those of a driver that has taken the job over: what they
    write is not this committer's to abort."""
    checkpoint_interval_ms: int | None = None
    """How often output is committed at best; None: when somebody asks for it, or at the end."""
    checkpoint_timeout_ms: int | None = None
    """How long a checkpoint may take before it is given up."""


class SinkWriter(ABC):
    """Writes records, in a slot, from the slot's one thread."""

    def open(self) -> None:
        """Called once, before anything else."""

    @abstractmethod
    def write(self, value: Any) -> None:
        """Take one record: leave it as it is, and keep a copy, not the record itself.

        Once this returns, whoever made the record may change it.
        """

    def write_timed(self, value: Any, timestamp: int | None) -> None:
        """The same with the record's timestamp, if it has one, for sinks that are `timed`."""
        self.write(value)

    def has_room(self) -> bool:
        """Whether `write` may be called; while not, the pressure travels up to the sources."""
        return True

    def flush(self) -> None:
        """The loop is about to sleep: hand on what was gathered for the sake of efficiency."""

    def prepare_commit(self) -> Callable[[], list[Plain]]:
        """Cut here: everything written so far belongs to the checkpoint, nothing later does.

        Returns quickly. The returned function is called once, in another thread, to finish the
        slow part (flushing, syncing); its result describes what is to be committed.
        """
        return _nothing

    def check_prepared(self, committables: list[Plain], for_ms: int) -> None:
        """SinkError unless these can be committed for so long yet.

        They were prepared for checkpoints that came to nothing, and the next one is to cover them.
        Called in another thread, as what `prepare_commit` returns. A sink whose prepared output
        lasts needs no check.
        """

    def close(self) -> None:
        """Called once at the end, also after a failure: release, make nothing visible."""


class Committer(ABC):
    """Makes prepared output visible, in the JobMaster."""

    @abstractmethod
    def commit(self, committables: list[Plain]) -> None:
        """Make these visible. Doing it again must change nothing.

        LostOutputError if some can never be made visible: best before any is.
        """

    def check(self, committables: list[Plain]) -> None:
        """LostOutputError if some of these can never be made visible; makes none visible.

        Asked before the first of several sinks commits. A sink that loses nothing needs no check.
        """

    def visible(self, committables: list[Plain]) -> list[Plain]:
        """Those of these that are visible, or may be, for all that the server can say.

        Asked when another sink has lost output: if nothing is visible, the job can go back to the
        checkpoint before. A sink that cannot tell says that all may be.
        """
        return committables

    @abstractmethod
    def abort_others(self, keep: list[Plain]) -> None:
        """No writer of an earlier attempt may ever become visible, except by `keep`.

        Called before a new attempt processes its first record. Writers of attempts later than
        `CommitterContext.last_attempt` are left alone.
        """

    def close(self) -> None:
        """Called once when the job is over and its output is settled."""


class Sink(ABC):
    """A place that records go to; it is pickled into the job."""

    timed = False
    """Whether writers want to know the records' timestamps: `write_timed` is called."""

    def for_type(self, declared: TypeInformation | None) -> Sink:
        """The sink for a stream of this type; for sinks that write different text then."""
        return self

    @abstractmethod
    def create_writer(self, context: WriterContext) -> SinkWriter:
        """A new writer for one subtask."""

    def create_committer(self, context: CommitterContext) -> Committer | None:
        """The committer, for sinks that prepare; None for plain ones."""
        return None


def _nothing() -> list[Plain]:
    return []
