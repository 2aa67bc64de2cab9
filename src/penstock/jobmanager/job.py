"""A job, ready to run: what the Dispatcher takes and a JobMaster carries out."""

from __future__ import annotations

from dataclasses import dataclass, field

from penstock.checkpoint.coordinator import CheckpointSettings
from penstock.checkpoint.store import CheckpointStore
from penstock.common.settings import RuntimeSettings
from penstock.common.shipped_files import ShippedFile
from penstock.graph.execution_graph import ExecutionGraph
from penstock.jobmanager.restart import NoRestart, RestartStrategy


@dataclass(frozen=True)
class Timeouts:
    """How long the JobMaster waits for what, in milliseconds."""

    registration: int = 30_000
    heartbeat: int = 10_000
    channel: int = 5_000
    stop: int = 3_000
    finish: int = 30_000
    launch_end: int = 10_000


@dataclass(frozen=True)
class Job:
    """Everything the JobMaster needs to know."""

    id: str
    graph: ExecutionGraph
    settings: RuntimeSettings = field(default_factory=RuntimeSettings)
    checkpoints: CheckpointSettings = field(default_factory=CheckpointSettings)
    store: CheckpointStore | None = None
    restart: RestartStrategy = field(default_factory=NoRestart)
    timeouts: Timeouts = field(default_factory=Timeouts)
    files: tuple[ShippedFile, ...] = ()
    """What slots need besides the program."""
    python: str | None = None
    """The Python that runs the slots; None: the session's."""

    @property
    def name(self) -> str:
        return self.graph.job.name
