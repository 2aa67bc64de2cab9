"""A user function's own part in checkpoints: its operator state, and what it hears of them.

The same for functions of operators and for functions that are sinks.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from penstock.checkpoint.handles import OperatorSnapshot, SegmentHandle
from penstock.checkpoint.store import SegmentStore
from penstock.common.clock import Clock
from penstock.errors import StateError
from penstock.runtime.checkpointed import (
    CheckpointedFunction,
    CheckpointListener,
    FunctionInitializationContext,
    FunctionSnapshotContext,
)
from penstock.runtime.functions import KeyedStateStore
from penstock.state.operator_state import OperatorStateBackend
from penstock.state.segments import GroupBlock, Origin


class FunctionState:
    """The operator state of one function in one subtask."""

    def __init__(
        self,
        function: Any,
        operator: str,
        place: Origin,
        clock: Clock,
        broadcast_names: Iterable[str] = (),
    ) -> None:
        self._function = function
        self._operator = operator
        self._place = place
        self._clock = clock
        self._restored = False
        self._undecided: set[int] = set()
        self.backend = OperatorStateBackend(broadcast_names)

    def restore(self, snapshot: OperatorSnapshot, store: SegmentStore) -> None:
        """Take over the function's part of a checkpoint; called before `initialize`."""
        self._restored = True
        handles = [handle for handle in snapshot.segments if handle.first_group < 0]
        self.backend.restore([read_segment(handle, store) for handle in handles], self._place)

    def initialize(self, keyed_states: KeyedStateStore) -> None:
        """Let the function declare its state; called before its `open`."""
        if isinstance(self._function, CheckpointedFunction):
            self._function.initialize_state(
                FunctionInitializationContext(self.backend, keyed_states, self._restored)
            )

    def cut(self, checkpoint: int) -> tuple[GroupBlock, ...]:
        """The operator state, after the function has put into it what it wants to keep."""
        if isinstance(self._function, CheckpointListener):
            self._undecided.add(checkpoint)
        try:
            if isinstance(self._function, CheckpointedFunction):
                context = FunctionSnapshotContext(checkpoint, self._clock.now_ms())
                self._function.snapshot_state(context)
            return tuple(self.backend.blocks())
        except StateError as error:
            raise located(self._operator, error) from error
        except Exception as error:
            message = f"snapshot_state raised {type(error).__name__}: {error}"
            raise located(self._operator, StateError(message)) from error

    def confirm(self, checkpoint: int) -> None:
        """`checkpoint` is complete."""
        if checkpoint in self._undecided:
            # Confirming is repeated, in case a message was lost; the function hears it once.
            self._undecided = {c for c in self._undecided if c > checkpoint}
            self._function.notify_checkpoint_complete(checkpoint)

    def abort(self, checkpoint: int) -> None:
        """`checkpoint` will never be complete."""
        if checkpoint in self._undecided:
            self._undecided.discard(checkpoint)
            self._function.notify_checkpoint_aborted(checkpoint)


def located(operator: str, error: StateError) -> StateError:
    """The error with the operator whose state it is."""
    return StateError(f"operator {operator!r}: {error.message}")


def read_segment(handle: SegmentHandle, store: SegmentStore) -> bytes:
    """A segment's content; CorruptCheckpointError if it is not what was written."""
    data = store.read_segment(handle.path)
    handle.verify(data)
    return data
