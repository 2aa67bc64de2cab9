"""Operators with keyed state and timers, at run time."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from penstock.checkpoint.handles import OperatorSnapshot
from penstock.checkpoint.parts import keyed_files
from penstock.checkpoint.store import SegmentStore
from penstock.common.clock import Clock
from penstock.common.keys import groups_of_subtask
from penstock.common.settings import StateSettings
from penstock.errors import StateError
from penstock.graph.operators import ReduceOperator
from penstock.graph.stream_graph import StreamNode
from penstock.runtime.broadcast_context import (
    KeyedReadingContext,
    ReadingTimerContext,
)
from penstock.runtime.context import (
    ElementContext,
    KeyedTimerService,
    SubtaskInfo,
    TimerContext,
)
from penstock.runtime.function_state import located
from penstock.runtime.functions import TimeDomain
from penstock.runtime.operator_cut import OperatorCut
from penstock.runtime.operators import RuntimeFunction
from penstock.runtime.segment_chain import ChainSettings, SegmentChain
from penstock.state.backend import KeyedStateBackend
from penstock.state.choice import make_backend
from penstock.state.keyed_parts import keyed_parts
from penstock.state.kinds import KeyContext
from penstock.state.marks import mark_of
from penstock.state.timers import KIND as TIMERS
from penstock.state.timers import TimerQueue


class RuntimeKeyedFunction(RuntimeFunction):
    """An operator with keyed state and timers."""

    def __init__(
        self,
        node: StreamNode,
        info: SubtaskInfo,
        clock: Clock,
        settings: ChainSettings,
        state: StateSettings,
    ) -> None:
        super().__init__(node, info, clock)
        self.key_context = KeyContext()
        self.state: KeyedStateBackend = make_backend(
            self.key_context, info.max_parallelism, clock, state
        )
        self.backend = self.state
        self.origin = replace(self.origin, backend=state.backend)
        self.groups = groups_of_subtask(info.subtask, info.max_parallelism, info.parallelism)
        self.chain = SegmentChain(settings)

    def restore(self, snapshot: OperatorSnapshot, store: SegmentStore) -> None:
        super().restore(snapshot, store)
        keyed = tuple(handle for handle in snapshot.segments if handle.first_group >= 0)
        goes_on = True
        for part in keyed_parts(keyed_files(keyed, store, self.groups)):
            try:
                part.origin.check_backend(self.origin.backend)
                self.state.restore(part.own_blocks(self.groups))
                if part.database is not None:
                    goes_on &= self.state.restore_database(part.database, self.groups)
            except StateError as error:
                raise located(self.node.name, error) from error
        # Segments that hold other key groups too must not be built upon: their owners differ now.
        own = (self.groups.start, self.groups.stop - 1)
        if goes_on and all((h.first_group, h.last_group) == own and not h.foreign for h in keyed):
            self.chain.restored(keyed)

    def open(self) -> None:
        restored = self.times.watermark
        self.timers = self.times = KeyedTimerService(
            self.key_context,
            self._clock,
            TimerQueue(self.state.table("__processing_timers", TIMERS)),
            TimerQueue(self.state.table("__event_timers", TIMERS)),
        )
        self.times.watermark = restored
        for name, gauge in self.state.gauges().items():
            self.report.metrics.gauge(name, gauge)
        if isinstance(self.operator, ReduceOperator):
            self.reduce_table = self.state.table("__reduced", "value")
        super().open()
        if self.state.has_migrated():
            # All of it would be in the next delta: it is written anew, upon nothing.
            self.chain.restored(())

    def element_context(self) -> Any:
        if self.broadcast is None:
            return ElementContext(self.key_context, self.timers)
        context = KeyedReadingContext(self.key_context, self.timers)
        context.backend = self.broadcast
        return context

    def timer_context(self, domain: TimeDomain) -> TimerContext:
        """What `on_timer` is called with."""
        if self.broadcast is None:
            return TimerContext(self.key_context, self.timers, domain)
        context = ReadingTimerContext(self.key_context, self.timers, domain)
        context.backend = self.broadcast
        return context

    def cut(self, checkpoint: int, copied: bool = False, stored: bool = True) -> OperatorCut:
        """`copied`: with all of the state beside it, for a savepoint.

        Not `stored`: for a savepoint alone, of a job without checkpoints.
        """
        base = self.chain.base() if stored else ()
        # The function first: it may change keyed state too, and what it raises comes before a cut.
        unkeyed = super().cut(checkpoint)
        try:
            files = stored and self.chain.incremental
            blocks = self.state.cut(mark_of(checkpoint), full=not base, files=files)
            whole = self.state.whole() if copied and (base or blocks.files) else None
        except StateError as error:
            raise located(self.node.name, error) from error
        return replace(
            unkeyed,
            base=base,
            blocks=blocks,
            whole=whole,
            groups=self.groups,
            files=blocks.files,
            stored_files=self.chain.files(),
            origin=self.origin,
        )

    def stored(self, checkpoint: int, snapshot: OperatorSnapshot) -> None:
        keyed = tuple(handle for handle in snapshot.segments if handle.first_group >= 0)
        self.chain.stored(mark_of(checkpoint), keyed)

    def confirm(self, checkpoint: int) -> None:
        super().confirm(checkpoint)
        self.state.confirm(mark_of(checkpoint))

    def close(self) -> None:
        self.chain.closed = True
        try:
            super().close()
        finally:
            self.state.close()

    def forget(self) -> None:
        self.state.forget()
