"""A table of state: what one state of one operator holds in one subtask."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from penstock.state.generations import Generations


@dataclass(frozen=True)
class StateTable:
    """The values by key, and which keys changed."""

    kind: str
    entries: dict[Any, Any]
    changes: Generations
