"""Operators at run time: user functions opened, with their state, timers, readers and writers.

An operator's part of a checkpoint comes in two steps. `cut` is the synchronous one, between two
records: it ends a generation of state, notes positions, and closes what a sink has written. What
it returns is finished off the loop, by `store`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from penstock.checkpoint.handles import OperatorSnapshot, SegmentHandle
from penstock.checkpoint.store import SegmentStore
from penstock.common.clock import Clock
from penstock.common.keys import groups_of_subtask
from penstock.common.plain import Plain
from penstock.connectors.sink import SinkWriter
from penstock.connectors.source import SourceReader
from penstock.errors import SinkError, StorageError
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
from penstock.runtime.functions import TimeDomain
from penstock.runtime.reporting import OperatorReport
from penstock.state.broadcast import KIND as BROADCAST
from penstock.state.broadcast import BroadcastBackend
from penstock.state.hashmap import HashMapBackend
from penstock.state.kinds import KeyContext
from penstock.state.segments import GroupBlock, decode_segment, encode_segment
from penstock.state.timers import TimerQueue

MAX_SEGMENT_CHAIN = 8
"""After so many deltas a checkpoint writes everything again, so that a restore stays short."""


@dataclass(frozen=True)
class OperatorCut:
    """An operator's state at a barrier, not yet durable."""

    uid: str
    checkpoint: int
    base: tuple[SegmentHandle, ...] = ()
    blocks: tuple[GroupBlock, ...] = ()
    groups: range = range(0)
    splits: tuple[Plain, ...] = ()
    prepare: Callable[[], list[Plain]] | None = None

    def store(self, store: SegmentStore | None, name: str) -> tuple[OperatorSnapshot, int]:
        """Make it durable; called once, off the loop. Also returns the bytes written."""
        segments, size = self.base, 0
        if self.blocks:
            assert store is not None, "state is cut for checkpoints only, and those have a store"
            data = encode_segment(list(self.blocks))
            path = store.write_segment(name, data)
            segments += (SegmentHandle.of(path, data, self.groups),)
            size = len(data)
        return OperatorSnapshot(segments, self.splits, self.committables()), size

    def committables(self) -> tuple[Plain, ...]:
        """Finish what a sink prepared. Failing here fails the attempt: its output would be lost."""
        if self.prepare is None:
            return ()
        try:
            return tuple(self.prepare())
        except StorageError as error:
            raise SinkError(f"a sink cannot prepare its output: {error}") from error


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

    def close(self) -> None:
        """Release everything; called also after a failure, and then perhaps without `open`."""


class RuntimeFunction(RuntimeOperator):
    """An operator around a user function."""

    def __init__(self, node: StreamNode, info: SubtaskInfo, clock: Clock) -> None:
        super().__init__(node, info)
        assert isinstance(node.operator, FunctionOperator)
        self.operator: FunctionOperator = node.operator
        self.backend: HashMapBackend | None = None
        self.times = Times(clock)
        self.broadcast: BroadcastBackend | None = None
        if isinstance(self.operator, BroadcastProcessOperator):
            self.broadcast = BroadcastBackend(self.operator.states)
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
        for handle in snapshot.segments:
            data = store.read_segment(handle.path)
            handle.verify(data)
            self._take_over(list(decode_segment(data, range(0))))

    def _take_over(self, blocks: list[GroupBlock]) -> None:
        for block in blocks:
            if block.kind == BROADCAST and self.broadcast is not None:
                self.broadcast.restore(block)

    def cut(self, checkpoint: int) -> OperatorCut:
        return OperatorCut(self.node.uid, checkpoint, blocks=tuple(self._whole()))

    def _whole(self) -> list[GroupBlock]:
        """State that is written in full every time."""
        return [] if self.broadcast is None else self.broadcast.blocks()

    def open(self) -> None:
        opener = getattr(self.operator.function, "open", None)
        if opener is not None and self.operator.method is not None:
            opener(OperatorContext(self.node.name, self.info, self.backend, self.report))
        self._opened = True

    def close(self) -> None:
        closer = getattr(self.operator.function, "close", None)
        if self._opened and closer is not None and self.operator.method is not None:
            self._opened = False
            closer()


class RuntimeKeyedFunction(RuntimeFunction):
    """An operator with keyed state and timers."""

    def __init__(self, node: StreamNode, info: SubtaskInfo, clock: Clock) -> None:
        super().__init__(node, info, clock)
        self.key_context = KeyContext()
        self.state = HashMapBackend(self.key_context, info.max_parallelism)
        self.backend = self.state
        self._clock = clock
        self._groups = groups_of_subtask(info.subtask, info.max_parallelism, info.parallelism)
        self._settled: tuple[SegmentHandle, ...] = ()
        self._unsettled: dict[int, tuple[SegmentHandle, ...]] = {}

    def restore(self, snapshot: OperatorSnapshot, store: SegmentStore) -> None:
        for handle in snapshot.segments:
            data = store.read_segment(handle.path)
            handle.verify(data)
            blocks = list(decode_segment(data, self._groups))
            self.state.restore(block for block in blocks if block.kind != BROADCAST)
            self._take_over(blocks)
        # Segments that hold other key groups too must not be built upon: their owners differ now.
        own = (self._groups.start, self._groups.stop - 1)
        if all((h.first_group, h.last_group) == own for h in snapshot.segments):
            self._settled = snapshot.segments

    def open(self) -> None:
        self.timers = self.times = KeyedTimerService(
            self.key_context,
            self._clock,
            TimerQueue(self.state.table("__processing_timers", "timers")),
            TimerQueue(self.state.table("__event_timers", "timers")),
        )
        if isinstance(self.operator, ReduceOperator):
            self.reduce_table = self.state.table("__reduced", "value")
        super().open()

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

    def cut(self, checkpoint: int) -> OperatorCut:
        full = not self._settled or len(self._settled) >= MAX_SEGMENT_CHAIN
        blocks = (*self.state.cut(checkpoint, full), *self._whole())
        base = () if full else self._settled
        return OperatorCut(self.node.uid, checkpoint, base, blocks, self._groups)

    def stored(self, checkpoint: int, snapshot: OperatorSnapshot) -> None:
        self._unsettled[checkpoint] = snapshot.segments

    def confirm(self, checkpoint: int) -> None:
        self.state.confirm(checkpoint)
        self._settled = self._unsettled.get(checkpoint, self._settled)
        self._unsettled = {c: kept for c, kept in self._unsettled.items() if c > checkpoint}


class RuntimeSource(RuntimeOperator):
    """A source's reader in a subtask."""

    def __init__(
        self, node: StreamNode, info: SubtaskInfo, reader: SourceReader, report: OperatorReport
    ) -> None:
        super().__init__(node, info, report)
        self.reader = reader
        self._restored: list[Plain] = []

    def restore(self, snapshot: OperatorSnapshot, store: SegmentStore) -> None:
        self._restored = list(snapshot.splits)

    def open(self) -> None:
        self.reader.open()
        if self._restored:
            self.reader.add_splits(self._restored)

    def cut(self, checkpoint: int) -> OperatorCut:
        return OperatorCut(self.node.uid, checkpoint, splits=tuple(self.reader.snapshot()))

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
