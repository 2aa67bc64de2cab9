"""Operators at run time: user functions opened, with their state, timers, readers and writers.

An operator's part of a checkpoint comes in two steps. `cut` is the synchronous one, between two
records: it ends a generation of state, notes positions, and closes what a sink has written. What
it returns is finished off the loop, by `store`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import Any

from penstock.checkpoint.handles import OperatorSnapshot, SegmentHandle
from penstock.checkpoint.store import SegmentStore
from penstock.common.clock import Clock
from penstock.common.keys import NO_GROUP, UNION_GROUP, groups_of_subtask
from penstock.common.plain import Plain
from penstock.common.settings import StateSettings
from penstock.connectors.function_sink import FunctionWriter
from penstock.connectors.sink import SinkWriter
from penstock.connectors.source import SourceReader
from penstock.errors import SinkError, StateError, StorageError
from penstock.graph.operators import BroadcastProcessOperator, FunctionOperator, ReduceOperator
from penstock.graph.stream_graph import StreamNode
from penstock.runtime.broadcast_context import (
    KeyedReadingContext,
    ReadingContext,
    ReadingTimerContext,
    WritingContext,
)
from penstock.runtime.context import (
    ElementContext,
    KeyedTimerService,
    OperatorContext,
    SubtaskInfo,
    TimerContext,
    Times,
    UnkeyedContext,
)
from penstock.runtime.function_state import FunctionState, located, read_segment
from penstock.runtime.functions import TimeDomain
from penstock.runtime.reporting import OperatorReport
from penstock.runtime.segment_chain import ChainSettings, SegmentChain
from penstock.state.backend import KeyedStateBackend
from penstock.state.choice import make_backend
from penstock.state.kinds import KeyContext
from penstock.state.marks import mark_of
from penstock.state.segments import GroupBlock, Origin, decode_segment, encode_segment, origin_of
from penstock.state.timers import TimerQueue


@dataclass(frozen=True)
class OperatorCut:
    """An operator's state at a barrier, not yet durable."""

    uid: str
    checkpoint: int
    name: str = ""
    base: tuple[SegmentHandle, ...] = ()
    blocks: Iterable[GroupBlock] = ()
    """Keyed state: what changed upon `base`."""
    groups: range = range(0)
    own: tuple[GroupBlock, ...] = ()
    """Operator state."""
    origin: Origin | None = None
    splits: tuple[Plain, ...] = ()
    prepare: Callable[[], list[Plain]] | None = None

    def store(self, store: SegmentStore | None, name: str) -> tuple[OperatorSnapshot, int]:
        """Make it durable; called once, off the loop. Also returns the bytes written."""
        try:
            keyed = list(self.blocks)
        except StateError as error:
            raise located(self.name, error) from error
        parts = [(name, keyed, self.groups)]
        for group, suffix in ((NO_GROUP, "own"), (UNION_GROUP, "union")):
            blocks = [block for block in self.own if block.group == group]
            parts.append((f"{name}-{suffix}", blocks, range(group, group + 1)))
        segments, size = self.base, 0
        for part_name, blocks, groups in parts:
            if blocks:
                assert store is not None, "state is cut for checkpoints only, and those have one"
                data = encode_segment(blocks, self.origin)
                path = store.write_segment(part_name, data)
                segments += (SegmentHandle.of(path, data, groups, map(_state_of, blocks)),)
                size += len(data)
        return OperatorSnapshot(segments, self.splits, self.committables()), size

    def committables(self) -> tuple[Plain, ...]:
        """Finish what a sink prepared. Failing here fails the attempt: its output would be lost."""
        if self.prepare is None:
            return ()
        try:
            return tuple(self.prepare())
        except StorageError as error:
            raise SinkError(f"a sink cannot prepare its output: {error}") from error


def _state_of(block: GroupBlock) -> tuple[str, str]:
    return block.state, block.kind


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
        for handle in keyed:
            if handle.overlaps(self.groups):
                data = read_segment(handle, store)
                try:
                    origin_of(data).check_backend(self.origin.backend)
                    self.state.restore(decode_segment(data, self.groups))
                except StateError as error:
                    raise located(self.node.name, error) from error
        # Segments that hold other key groups too must not be built upon: their owners differ now.
        own = (self.groups.start, self.groups.stop - 1)
        if all((h.first_group, h.last_group) == own and not h.foreign for h in keyed):
            self.chain.restored(keyed)

    def open(self) -> None:
        restored = self.times.watermark
        self.timers = self.times = KeyedTimerService(
            self.key_context,
            self._clock,
            TimerQueue(self.state.table("__processing_timers", "timers")),
            TimerQueue(self.state.table("__event_timers", "timers")),
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

    def cut(self, checkpoint: int, full: bool = False) -> OperatorCut:
        """`full`: all of the state, upon nothing."""
        base = () if full else self.chain.base()
        # The function first: it may change keyed state too, and what it raises comes before a cut.
        unkeyed = super().cut(checkpoint)
        try:
            blocks = self.state.cut(mark_of(checkpoint), full=not base)
        except StateError as error:
            raise located(self.node.name, error) from error
        # A savepoint is for any backend.
        origin = replace(self.origin, backend="") if full else self.origin
        return replace(unkeyed, base=base, blocks=blocks, groups=self.groups, origin=origin)

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


class RuntimeSource(RuntimeOperator):
    """A source's reader in a subtask."""

    def __init__(
        self, node: StreamNode, info: SubtaskInfo, reader: SourceReader, report: OperatorReport
    ) -> None:
        super().__init__(node, info, report)
        self.reader = reader
        self._restored: list[Plain] = []
        self._cut: dict[int, list[Plain]] = {}

    def restore(self, snapshot: OperatorSnapshot, store: SegmentStore) -> None:
        self._restored = list(snapshot.splits)

    def open(self) -> None:
        self.reader.open()
        if self._restored:
            self.reader.add_splits(self._restored)

    def cut(self, checkpoint: int) -> OperatorCut:
        self._cut[checkpoint] = splits = self.reader.snapshot()
        return OperatorCut(self.node.uid, checkpoint, splits=tuple(splits))

    def confirm(self, checkpoint: int) -> None:
        splits = self._cut.get(checkpoint)
        self._cut = {c: kept for c, kept in self._cut.items() if c > checkpoint}
        if splits is not None:
            self.reader.covered(splits)

    def close(self) -> None:
        self.reader.close()


class RuntimeSink(RuntimeOperator):
    """A sink's writer in a subtask."""

    def __init__(
        self, node: StreamNode, info: SubtaskInfo, writer: SinkWriter, report: OperatorReport
    ) -> None:
        super().__init__(node, info, report)
        self.writer = writer
        self._unconfirmed: dict[int, _Prepared] = {}

    def open(self) -> None:
        self.writer.open()

    def cut(self, checkpoint: int) -> OperatorCut:
        # What was prepared for a checkpoint that came to nothing is carried by the next one.
        self._unconfirmed[checkpoint] = _Prepared(self.writer.prepare_commit())
        generations = tuple(self._unconfirmed.values())
        return OperatorCut(
            self.node.uid,
            checkpoint,
            prepare=lambda: [value for prepared in generations for value in prepared.finish()],
        )

    def confirm(self, checkpoint: int) -> None:
        self._unconfirmed = {c: p for c, p in self._unconfirmed.items() if c > checkpoint}

    def close(self) -> None:
        self.writer.close()


class RuntimeSinkFunction(RuntimeSink):
    """A user function as a sink, with the state that it keeps itself."""

    def __init__(
        self,
        node: StreamNode,
        info: SubtaskInfo,
        writer: FunctionWriter,
        report: OperatorReport,
        clock: Clock,
    ) -> None:
        super().__init__(node, info, writer, report)
        self._origin = Origin(info.subtask, info.parallelism)
        self.own = FunctionState(writer.function, node.name, self._origin, clock)

    def restore(self, snapshot: OperatorSnapshot, store: SegmentStore) -> None:
        self.own.restore(snapshot, store)

    def open(self) -> None:
        self.own.initialize(OperatorContext(self.node.name, self.info, None, self.report))
        super().open()

    def cut(self, checkpoint: int) -> OperatorCut:
        cut = super().cut(checkpoint)
        if not checkpoint:
            # The end of a job without checkpoints: there is nothing that state would be for.
            return cut
        own = self.own.cut(checkpoint)
        return replace(cut, name=self.node.name, own=own, origin=self._origin)

    def confirm(self, checkpoint: int) -> None:
        super().confirm(checkpoint)
        self.own.confirm(checkpoint)

    def abort(self, checkpoint: int) -> None:
        self.own.abort(checkpoint)


class _Prepared:
    """What a writer prepared at one cut: finished once, asked for as often as needed."""

    def __init__(self, prepare: Callable[[], list[Plain]]) -> None:
        self._prepare: Callable[[], list[Plain]] | None = prepare
        self._committables: list[Plain] = []

    def finish(self) -> list[Plain]:
        if self._prepare is not None:
            self._committables = self._prepare()
            self._prepare = None
        return self._committables
