"""A job, ready to run: what the Dispatcher takes and a JobMaster carries out."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from penstock.checkpoint.settings import CheckpointSettings
from penstock.common.listening import PortRange
from penstock.common.settings import RuntimeSettings
from penstock.common.shipped_files import ShippedFile
from penstock.errors import ProgramError
from penstock.graph.blueprint import Blueprint
from penstock.graph.execution_graph import ExecutionGraph

if TYPE_CHECKING:
    # Building a program needs no storage: it is imported when a job is put together.
    from penstock.checkpoint.store import CheckpointStore
    from penstock.jobmanager.restart import RestartStrategy


def _no_restart() -> RestartStrategy:
    from penstock.jobmanager.restart import NoRestart

    return NoRestart()


@dataclass(frozen=True)
class Timeouts:
    """How long the JobMaster waits for what, in milliseconds."""

    registration: int = 30_000
    """For slots to register; and to begin with what they were told to start."""
    start: int | None = None
    """For slots to restore state and open functions; None: as long as that takes."""
    heartbeat: int = 10_000
    stop: int = 3_000
    notice: int = 500
    finish: int = 30_000
    launch_end: int = 10_000


@dataclass(frozen=True)
class Ports:
    """On which ports the driver and the slots listen; None: on any free one."""

    driver: PortRange | None = None
    slots: PortRange | None = None


@dataclass(frozen=True)
class Job:
    """Everything the JobMaster needs to know."""

    id: str
    graph: ExecutionGraph
    settings: RuntimeSettings = field(default_factory=RuntimeSettings)
    checkpoints: CheckpointSettings = field(default_factory=CheckpointSettings)
    store: CheckpointStore | None = None
    restart: RestartStrategy = field(default_factory=_no_restart)
    timeouts: Timeouts = field(default_factory=Timeouts)
    restore_path: str | None = None
    """A checkpoint to begin with, if the job has none of its own."""
    claim: bool = False
    """Whether what it begins with is deleted once the job has a copy of its own."""
    savepoint_directory: str | None = None
    """Where savepoints go whose caller does not say."""
    ignore_unclaimed: bool = False
    """Whether state that no operator claims is let go; else the job does not start."""
    named: bool = False
    """Whether the id was chosen by somebody, who may choose it again."""

    files: tuple[ShippedFile, ...] = ()
    """What slots need besides the program."""
    python: str | None = None
    """The Python that runs the slots; None: the session's."""
    blueprint: Blueprint | None = None
    """What the graph was laid out from; None: it stays as it is."""
    ports: Ports = field(default_factory=Ports)

    def claimed(self) -> Job:
        """This job, taken over by this driver from any that had it before.

        CheckpointDirectoryError if its checkpoints cannot be written.
        """
        if self.store is None:
            return self
        self.store.prepare()
        return replace(self, store=self.store.claim())

    def at(self, parallelism: int) -> ExecutionGraph:
        """Its program at another parallelism.

        InvalidParallelismError or ProgramError if it cannot have it.
        """
        if self.blueprint is None:
            raise ProgramError(f"job {self.name!r} has a layout that cannot be changed")
        return self.blueprint.at(parallelism).laid_out()

    @property
    def attempts_before(self) -> int:
        """The number of the last attempt that an earlier driver can have made."""
        from penstock.checkpoint.lineage import attempts_before

        return attempts_before(self.store.generation) if self.store is not None else 0

    @property
    def name(self) -> str:
        return self.graph.job.name
