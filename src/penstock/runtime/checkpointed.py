"""Functions that take part in checkpoints themselves, by the names of Flink's Java API.

class Buffer(MapFunction, CheckpointedFunction):
    def initialize_state(self, context):
        store = context.get_operator_state_store()
        self._saved = store.get_list_state(ListStateDescriptor("buffer", Types.STRING()))
        self._buffer = list(self._saved.get())

    def snapshot_state(self, context):
        self._saved.update(self._buffer)
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import TYPE_CHECKING

from penstock.runtime.functions import KeyedStateStore

if TYPE_CHECKING:
    # A program names no store: it is imported where functions run.
    from penstock.state.operator_state import OperatorStateStore


@dataclass(frozen=True)
class FunctionInitializationContext:
    """What `initialize_state` is called with."""

    _operator_states: OperatorStateStore
    _keyed_states: KeyedStateStore
    _restored: bool

    def is_restored(self) -> bool:
        """Whether the function goes on from a checkpoint."""
        return self._restored

    def get_operator_state_store(self) -> OperatorStateStore:
        """The way to lists and maps that belong to the subtask."""
        return self._operator_states

    def get_keyed_state_store(self) -> KeyedStateStore:
        """Keyed state can be declared here; there is no current key yet."""
        return self._keyed_states


@dataclass(frozen=True)
class FunctionSnapshotContext:
    """What `snapshot_state` is called with."""

    _checkpoint_id: int
    _timestamp: int

    def get_checkpoint_id(self) -> int:
        """The number of the checkpoint."""
        return self._checkpoint_id

    def get_checkpoint_timestamp(self) -> int:
        """When the snapshot is taken in this subtask, in milliseconds."""
        return self._timestamp


class CheckpointedFunction(ABC):
    """A function with operator state."""

    @abstractmethod
    def initialize_state(self, context: FunctionInitializationContext) -> None:
        """Declare state and take over what is in it; called before `open`."""

    @abstractmethod
    def snapshot_state(self, context: FunctionSnapshotContext) -> None:
        """Put into state what must be in the checkpoint; called between two records.

        When it raises, the checkpoint is declined and the job goes on.
        """


class CheckpointListener(ABC):
    """A function that hears what became of checkpoints. It may miss some, after a failure."""

    @abstractmethod
    def notify_checkpoint_complete(self, checkpoint_id: int) -> None:
        """The checkpoint, of which this function's snapshot is a part, is complete."""

    def notify_checkpoint_aborted(self, checkpoint_id: int) -> None:
        """The checkpoint will never be complete."""
