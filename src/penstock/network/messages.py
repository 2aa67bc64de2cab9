"""What the JobMaster and the slots say to each other.

Every message about a running attempt carries its number; a message of another attempt is dropped.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from penstock.common.metrics import MetricReading
from penstock.common.plain import Plain
from penstock.common.settings import RuntimeSettings
from penstock.network.elements import SavepointTarget

Subtask = tuple[int, int]
"""(vertex, index), as `penstock.graph.execution_graph.SubtaskId`."""


# --- from a slot ------------------------------------------------------------------------------


@dataclass(frozen=True)
class Register:
    """A slot's process has started and asks for work."""

    launch: int
    slot: int
    host: str
    pid: int


@dataclass(frozen=True)
class Prepared:
    """The slot has opened its port for this attempt."""

    attempt: int
    slot: int
    address: str


@dataclass(frozen=True)
class Restored:
    """Every state of the slot is restored, and was what the checkpoint had; nothing is open yet."""

    attempt: int
    slot: int


@dataclass(frozen=True)
class Damaged:
    """A file of the checkpoint is not what was written, as the slot sees it."""

    attempt: int
    slot: int
    path: str
    error: BaseException


@dataclass(frozen=True)
class Running:
    """Every function of the slot is open."""

    attempt: int
    slot: int


@dataclass(frozen=True)
class SubtaskReport:
    """What the user functions of a subtask registered, as it was at one moment.

    `accumulators` is a pickled list of dicts from name to Accumulator, one dict per operator;
    `tags` names, by operator uid, the side outputs that records were sent to.
    """

    metrics: tuple[MetricReading, ...]
    accumulators: bytes | None
    tags: Mapping[str, tuple[str, ...]] = field(default_factory=dict)


@dataclass(frozen=True)
class Acknowledge:
    """A subtask's part of a checkpoint is done. `snapshot` is a SubtaskSnapshot.

    `segments` holds the state itself where checkpoints live in the JobMaster's memory. Of one that
    holds the job, `report` is what functions had registered at the cut. Of a savepoint, `copy` is
    the snapshot as the savepoint has it.
    """

    attempt: int
    subtask: Subtask
    checkpoint: int
    snapshot: Any
    segments: Mapping[str, bytes]
    report: SubtaskReport | None = None
    copy: Any = None


@dataclass(frozen=True)
class Decline:
    """A subtask could not do its part of a checkpoint."""

    attempt: int
    subtask: Subtask
    checkpoint: int
    reason: str


@dataclass(frozen=True)
class SplitRequest:
    """A reader has nothing left to read, or the time to ask again has come."""

    attempt: int
    subtask: Subtask


@dataclass(frozen=True)
class AtEnd:
    """A subtask has processed all its input. Committables only where no checkpoint takes them."""

    attempt: int
    subtask: Subtask
    committables: Mapping[str, tuple[Plain, ...]]
    report: SubtaskReport | None = None


@dataclass(frozen=True)
class Emitted:
    """Values of a sink for the client; `epoch` is the checkpoint that covers them, 0 for none."""

    attempt: int
    subtask: Subtask
    uid: str
    epoch: int
    values: list[Any]


@dataclass(frozen=True)
class Failed:
    """The attempt cannot go on."""

    attempt: int
    slot: int
    error: BaseException


@dataclass(frozen=True)
class Stopped:
    """Nothing of the attempt is alive in this slot any more."""

    attempt: int
    slot: int


@dataclass(frozen=True)
class SubtaskMetrics:
    """How a subtask is doing; times are totals since the attempt began."""

    records_in: int
    records_out: int
    busy_ns: int
    backpressured_ns: int
    idle_ns: int
    queued: int
    watermark: int
    idle: bool = False
    """Whether nobody waits for its watermark."""
    holder: int | str | None = None
    """What holds its watermark back: the number of an input channel, or the name of a split."""
    watermark_since_ms: int | None = None
    """When its watermark last moved."""
    aligned: bool = False
    """Whether it reads nothing because it is too far ahead of its alignment group."""


@dataclass(frozen=True)
class Starting:
    """What a slot that does not run yet is busy with, and how much of its state it has read."""

    what: str
    read: int
    """Bytes."""
    size: int
    """Bytes of all files that it reads; of some of them it may need only parts."""

    def __str__(self) -> str:
        if not self.size:
            return self.what
        return f"{self.what}, {self.read / 1e6:,.1f} of {self.size / 1e6:,.1f} MB read"


@dataclass(frozen=True)
class Heartbeat:
    """The slot's process is alive, and how its subtasks are doing."""

    attempt: int
    slot: int
    metrics: Mapping[Subtask, SubtaskMetrics] = field(default_factory=dict)
    strangers: int = 0
    reports: Mapping[Subtask, SubtaskReport] = field(default_factory=dict)
    starting: Starting | None = None
    """While the slot restores state or opens functions."""


# --- to a slot --------------------------------------------------------------------------------


@dataclass(frozen=True)
class Prepare:
    """Open a port for this attempt, with these keys, and say where it is."""

    attempt: int
    public_key: bytes
    secret_key: bytes


@dataclass(frozen=True)
class Deploy:
    """Restore the state of your part of the program, and say so.

    `store` is the CheckpointStore, None without checkpoints; `restored` holds a SubtaskSnapshot
    per subtask of the slot, or nothing at a first start; `segments` is what those refer to where
    checkpoints live in the JobMaster's memory.
    """

    attempt: int
    settings: RuntimeSettings
    store: Any
    restored: Mapping[Subtask, Any]
    segments: Mapping[str, bytes]
    peers: Mapping[int, str]
    checkpoint: int = 0
    """The checkpoint that the attempt goes on from; 0 at a first start."""


@dataclass(frozen=True)
class Go:
    """Every slot has restored its state and all output is settled: open your functions and run."""

    attempt: int


@dataclass(frozen=True)
class Trigger:
    """Begin a checkpoint."""

    attempt: int
    checkpoint: int
    confirmed: int
    savepoint: SavepointTarget | None = None
    overtakes_after_ms: int | None = None
    """When barriers begin to overtake what waits; None: never, which is an aligned checkpoint."""
    holds: bool = False
    """Whoever has done its part does nothing more, unless the checkpoint is given up."""


END = 0
"""In place of a checkpoint: the end of a job that has none. All of its output is committed."""


@dataclass(frozen=True)
class Complete:
    """A checkpoint is complete; or, with `END`, the whole job is."""

    attempt: int
    checkpoint: int


@dataclass(frozen=True)
class Abort:
    """A checkpoint was given up."""

    attempt: int
    checkpoint: int


@dataclass(frozen=True)
class AssignSplits:
    """Splits for a reader; None: there will be no more. It asks again after `ask_again_ms`."""

    attempt: int
    subtask: Subtask
    splits: list[Plain] | None
    ask_again_ms: int | None = None
    waited_for: bool = False
    """Whether event time waits for the reader if it has no splits."""


@dataclass(frozen=True)
class Align:
    """Read no further than to this watermark until told otherwise."""

    attempt: int
    subtask: Subtask
    limit: int


@dataclass(frozen=True)
class EmitCredit:
    """The client took this many messages of values."""

    attempt: int
    subtask: Subtask
    uid: str
    messages: int


@dataclass(frozen=True)
class EndAttempt:
    """Stop the attempt, and say so when nothing of it is left."""

    attempt: int


@dataclass(frozen=True)
class Leave:
    """End the slot's process: it is not wanted (any more).

    Its functions are closed first; a process that has not ended after `grace_ms` ends itself. One
    whose loop has not even taken this message after `notice_ms` is stuck in user code, and does so
    then: there is nothing to wait for.
    """

    grace_ms: int = 1000
    notice_ms: int | None = None
