"""What flows in a channel, in order: batches of records, and these control elements.

A batch is a plain list of records; on an edge that carries time, of pairs (record, timestamp).
Control elements cost no credit.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Watermark:
    """No record with a timestamp at or below this one follows, as far as the sender knows."""

    timestamp: int


@dataclass(frozen=True)
class WatermarkStatus:
    """Whether the sender has gone idle: nobody waits for its watermark until it is active again."""

    idle: bool


@dataclass(frozen=True)
class SavepointTarget:
    """What makes a checkpoint a savepoint: where it goes, and what happens behind it."""

    directory: str
    name: str
    """Of the folder in `directory`."""
    stop: bool = False
    """Whoever has done its part does nothing more."""
    drain: bool = False
    """Event time comes to its end first."""


@dataclass(frozen=True)
class Barrier:
    """Everything before it belongs to the checkpoint, nothing behind it does."""

    checkpoint: int
    confirmed: int
    """The newest checkpoint that was complete when this one was triggered."""
    savepoint: SavepointTarget | None = None
    overtakes_after_ms: int | None = None
    """When it may overtake what waits: 0, it does; None, never; else so long after the trigger."""
    holds: bool = False
    """Whoever has done its part does nothing more, unless the checkpoint is given up."""


@dataclass(frozen=True)
class EndOfInput:
    """Nothing follows. It counts as every later barrier."""


Control = Watermark | WatermarkStatus | Barrier | EndOfInput
Element = list[Any] | Control
END_OF_INPUT = EndOfInput()
