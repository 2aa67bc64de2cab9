"""What a subtask is built from."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from penstock.checkpoint.channel_state import OwnBatch
from penstock.checkpoint.store import SegmentStore
from penstock.graph.execution_graph import SubtaskId
from penstock.runtime.chain import CompiledChain
from penstock.runtime.event_time import EventClock
from penstock.runtime.gate import InputGate
from penstock.runtime.operators import RuntimeOperator
from penstock.runtime.output import Output, Room


@dataclass(frozen=True)
class SubtaskParts:
    """The chain of one subtask, and what surrounds it in one attempt."""

    id: SubtaskId
    operators: list[RuntimeOperator]
    gate: InputGate | None
    outputs: list[Output]
    room: Room
    chain: CompiledChain
    store: SegmentStore | None
    attempt: int
    finished: bool
    """Restored as finished: it has nothing to do but say so downstream."""
    watermark: int
    step_records: int
    buffer_timeout_ms: int
    timed: bool = False
    """Whether input records come with their timestamps."""
    clock: EventClock | None = None
    """Where event time begins in this subtask."""
    watermark_interval_ms: int = 200
    checkpoint: int = 0
    """The checkpoint that the attempt goes on from; 0 at a first start."""
    changelog_ms: int | None = None
    """How often changes of state are written between checkpoints; None: they are not."""
    compresses: bool = False
    """Whether state in checkpoints is compressed."""
    edges: Mapping[int, str] = field(default_factory=dict)
    """The names of the job's edges, by which channel state is found again."""
    own_batch: OwnBatch | None = None
    """What the subtask had in its hands when the checkpoint was made."""
