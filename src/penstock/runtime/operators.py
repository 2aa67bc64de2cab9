"""Operators at run time: user functions opened, with their state, timers, readers and writers.

An operator's part of a checkpoint comes in two steps. `cut` is the synchronous one, between two
records: it ends a generation of state, notes positions, and closes what a sink has written. What
it returns is finished off the loop, by `store`.
"""

from __future__ import annotations

from typing import Any

from penstock.checkpoint.handles import OperatorSnapshot
from penstock.checkpoint.store import SegmentStore
from penstock.common.clock import Clock
from penstock.graph.operators import BroadcastProcessOperator, FunctionOperator
from penstock.graph.stream_graph import StreamNode
from penstock.runtime.broadcast_context import (
    ReadingContext,
    WritingContext,
)
from penstock.runtime.context import (
    OperatorContext,
    SubtaskInfo,
    Times,
    UnkeyedContext,
)
from penstock.runtime.function_state import FunctionState
from penstock.runtime.operator_cut import OperatorCut
from penstock.runtime.reporting import OperatorReport
from penstock.state.backend import KeyedStateBackend
from penstock.state.segments import Origin


class RuntimeOperator:
    """One operator of one subtask; this one is stateless."""

    def __init__(
        self, node: StreamNode, info: SubtaskInfo, report: OperatorReport | None = None
    ) -> None:
        self.node = node
        self.info = info
        self.report = report if report is not None else OperatorReport()

    def open(self) -> None:
        """Open the user function."""

    def restore(self, snapshot: OperatorSnapshot, store: SegmentStore) -> None:
        """Take over the operator's part of a checkpoint; called before `open`."""

    def cut(self, checkpoint: int) -> OperatorCut:
        return OperatorCut(self.node.uid, checkpoint)

    def stored(self, checkpoint: int, snapshot: OperatorSnapshot) -> None:
        """What `cut` returned for `checkpoint` is durable."""

    def confirm(self, checkpoint: int) -> None:
        """`checkpoint` is complete."""

    def abort(self, checkpoint: int) -> None:
        """`checkpoint` will never be complete."""

    def close(self) -> None:
        """Release everything; called also after a failure, and then perhaps without `open`."""

    def forget(self) -> None:
        """After `close`: let go of all state, which may take long; other threads run meanwhile."""


class RuntimeFunction(RuntimeOperator):
    """An operator around a user function, with the state that has no key."""

    def __init__(self, node: StreamNode, info: SubtaskInfo, clock: Clock) -> None:
        super().__init__(node, info)
        assert isinstance(node.operator, FunctionOperator)
        self.operator: FunctionOperator = node.operator
        self.backend: KeyedStateBackend | None = None
        self.times = Times(clock)
        self.origin = Origin(info.subtask, info.parallelism)
        broadcasts = isinstance(self.operator, BroadcastProcessOperator)
        names = self.operator.states if isinstance(self.operator, BroadcastProcessOperator) else ()
        self.own = FunctionState(self.operator.function, node.name, self.origin, clock, names)
        self.broadcast = self.own.backend.broadcast if broadcasts else None
        self._clock = clock
        self._opened = False

    def element_context(self) -> Any:
        """What a function with a context is called with for records of the first input."""
        if self.broadcast is not None:
            return ReadingContext(self.times, self.broadcast)
        return UnkeyedContext(self.times)

    def second_context(self) -> Any:
        """The same for the second input."""
        if self.broadcast is not None:
            return WritingContext(self.times, self.broadcast)
        return self.element_context()

    def restore(self, snapshot: OperatorSnapshot, store: SegmentStore) -> None:
        self.own.restore(snapshot, store)

    def cut(self, checkpoint: int) -> OperatorCut:
        return OperatorCut(
            self.node.uid,
            checkpoint,
            self.node.name,
            own=self.own.cut(checkpoint),
            origin=self.origin,
        )

    def confirm(self, checkpoint: int) -> None:
        self.own.confirm(checkpoint)

    def abort(self, checkpoint: int) -> None:
        self.own.abort(checkpoint)

    def open(self) -> None:
        function = self.operator.function
        context = OperatorContext(self.node.name, self.info, self.backend, self.report)
        self.own.initialize(context)
        opener = getattr(function, "open", None)
        if opener is not None and self.operator.method is not None:
            opener(context)
        self._opened = True

    def close(self) -> None:
        closer = getattr(self.operator.function, "close", None)
        if self._opened and closer is not None and self.operator.method is not None:
            self._opened = False
            closer()
