"""The ends of a chain at run time: a source's reader, a sink's writer."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace

from penstock.checkpoint.handles import OperatorSnapshot
from penstock.checkpoint.store import SegmentStore
from penstock.common.clock import Clock
from penstock.common.plain import Plain
from penstock.connectors.function_sink import FunctionWriter
from penstock.connectors.sink import SinkWriter
from penstock.connectors.source import SourceReader
from penstock.graph.stream_graph import StreamNode
from penstock.network.messages import END
from penstock.runtime.context import (
    OperatorContext,
    SubtaskInfo,
)
from penstock.runtime.function_state import FunctionState
from penstock.runtime.operator_cut import OperatorCut
from penstock.runtime.operators import RuntimeOperator
from penstock.runtime.reporting import OperatorReport
from penstock.state.segments import Origin


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
        self.note(checkpoint)
        return OperatorCut(self.node.uid, checkpoint, splits=tuple(self._cut[checkpoint]))

    def note(self, checkpoint: int) -> None:
        """This is how far the reader has come."""
        self._cut[checkpoint] = self.reader.snapshot()

    def confirm(self, checkpoint: int) -> None:
        splits = self._cut.get(checkpoint)
        self._cut = {c: kept for c, kept in self._cut.items() if c > checkpoint}
        if splits is not None:
            self.reader.covered(splits)

    def abort(self, checkpoint: int) -> None:
        self._cut.pop(checkpoint, None)

    def close(self) -> None:
        self.reader.close()


def note_ends(operators: Iterable[RuntimeOperator], checkpoint: int) -> None:
    """The subtask has ended: readers hear what they read is done when `checkpoint` is confirmed."""
    for operator in operators:
        if isinstance(operator, RuntimeSource):
            operator.note(checkpoint)


def outlives_its_input(operator: RuntimeOperator) -> bool:
    """Whether an operator of a subtask that has ended has a part in a cut.

    What has ended has no state any more: only output that is not committed yet, and splits of which
    the reader has yet to say how far it came.
    """
    if isinstance(operator, RuntimeSource):
        return bool(operator.reader.snapshot())
    return isinstance(operator, RuntimeSink)


class RuntimeSink(RuntimeOperator):
    """A sink's writer in a subtask."""

    def __init__(
        self,
        node: StreamNode,
        info: SubtaskInfo,
        writer: SinkWriter,
        report: OperatorReport,
        checkpoint_timeout_ms: int,
    ) -> None:
        super().__init__(node, info, report)
        self.writer = writer
        self._timeout_ms = checkpoint_timeout_ms
        self._unconfirmed: dict[int, _Prepared] = {}

    def open(self) -> None:
        self.writer.open()

    def cut(self, checkpoint: int) -> OperatorCut:
        # What was prepared for a checkpoint that came to nothing is carried by the next one.
        earlier = tuple(self._unconfirmed.values())
        self._unconfirmed[checkpoint] = now = _Prepared(self.writer.prepare_commit())

        def prepare() -> list[Plain]:
            carried = [value for prepared in earlier for value in prepared.finish()]
            if carried:
                # A checkpoint that covers what cannot be committed any more could not be restored.
                self.writer.check_prepared(carried, self._timeout_ms)
            return carried + now.finish()

        return OperatorCut(self.node.uid, checkpoint, prepare=prepare)

    def confirm(self, checkpoint: int) -> None:
        # What was cut later stays; the cut at the end of a job without checkpoints has no number.
        cuts = list(self._unconfirmed)
        if checkpoint in self._unconfirmed:
            later = cuts[cuts.index(checkpoint) + 1 :]
        else:
            later = [cut for cut in cuts if cut == END or cut > checkpoint]
        self._unconfirmed = {cut: self._unconfirmed[cut] for cut in later}

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
        checkpoint_timeout_ms: int,
    ) -> None:
        super().__init__(node, info, writer, report, checkpoint_timeout_ms)
        self._origin = Origin(info.subtask, info.parallelism)
        self.own = FunctionState(writer.function, node.name, self._origin, clock)

    def restore(self, snapshot: OperatorSnapshot, store: SegmentStore) -> None:
        self.own.restore(snapshot, store)

    def open(self) -> None:
        self.own.initialize(OperatorContext(self.node.name, self.info, None, self.report))
        super().open()

    def cut(self, checkpoint: int) -> OperatorCut:
        cut = super().cut(checkpoint)
        if checkpoint == END:
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
