"""Builds a slot's part of the ExecutionGraph: operators open, channels connected, code compiled."""

from __future__ import annotations

import itertools
from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from penstock.checkpoint.channel_state import OwnBatch
from penstock.checkpoint.handles import SubtaskSnapshot
from penstock.checkpoint.store import CarriedSegments, SegmentStore
from penstock.common.settings import StateSettings
from penstock.connectors.function_sink import FunctionSink, FunctionWriter
from penstock.connectors.sink import WriterContext
from penstock.connectors.source import ReaderContext
from penstock.errors import FailureOrigin, IncompatibleStateError, PenstockError
from penstock.graph.edge_names import edge_names
from penstock.graph.execution_graph import ChannelId, ExecutionGraph, SubtaskId
from penstock.graph.job_graph import JobEdge, JobVertex
from penstock.graph.operators import (
    AsyncOperator,
    SinkOperator,
    SourceOperator,
    TimestampsOperator,
)
from penstock.graph.stream_graph import StreamNode
from penstock.graph.timing import strategy_of
from penstock.metrics import MetricGroup
from penstock.network.messages import Deploy
from penstock.runtime.async_operator import IoCalls, RuntimeAsync
from penstock.runtime.chain import EMPTY_CHAIN, compile_chain
from penstock.runtime.chain_emit import Exchange
from penstock.runtime.context import SubtaskInfo
from penstock.runtime.emitter import Emitter
from penstock.runtime.ends import RuntimeSink, RuntimeSinkFunction, RuntimeSource
from penstock.runtime.environment import SlotEnvironment
from penstock.runtime.event_time import EventClock
from penstock.runtime.failure import located_in, user_error, user_frames
from penstock.runtime.gate import InputGate
from penstock.runtime.helpers import Helpers
from penstock.runtime.input_channel import InputChannel
from penstock.runtime.keyed_operator import RuntimeKeyedFunction
from penstock.runtime.operators import RuntimeFunction, RuntimeOperator
from penstock.runtime.output import Output, OutputChannel, Room
from penstock.runtime.ports import LocalPort, RemotePort
from penstock.runtime.reporting import OperatorReport
from penstock.runtime.restored_channels import restore_channels
from penstock.runtime.segment_chain import ChainSettings
from penstock.runtime.startup import CountedSegments, Startup
from penstock.runtime.subtask import Subtask
from penstock.runtime.subtask_parts import SubtaskParts


@dataclass(frozen=True)
class BuiltSlot:
    """The parts of a slot, by the names they are reached by."""

    subtasks: list[Subtask]
    receivers: dict[ChannelId, tuple[InputGate, InputChannel]]
    senders: dict[ChannelId, OutputChannel]
    remote_senders: dict[ChannelId, OutputChannel]
    emitters: dict[tuple[SubtaskId, str], Emitter]
    helpers: Helpers


class SlotBuilder:
    """Builds the subtasks of a slot, in two steps: all state first, then all functions.

    Readers and writers of connectors are made in the second step too: until then an earlier
    attempt's output may be undecided, and nothing of this attempt is to be in its way.
    """

    def __init__(
        self,
        graph: ExecutionGraph,
        job_id: str,
        slot: int,
        deploy: Deploy,
        environment: SlotEnvironment,
        release_remote: Callable[[ChannelId], None],
        startup: Startup,
    ) -> None:
        self._graph = graph
        self._job_id = job_id
        self._slot = slot
        self._deploy = deploy
        self._environment = environment
        self._release_remote = release_remote
        self._startup = startup
        self._store: SegmentStore | None = deploy.store
        if deploy.store is not None and deploy.store.in_memory:
            self._store = CarriedSegments(deploy.segments)
        self._gates: dict[SubtaskId, InputGate] = {}
        self._built = BuiltSlot([], {}, {}, {}, {}, Helpers())
        self._operators: dict[tuple[SubtaskId, int], RuntimeOperator] = {}
        self._own: dict[SubtaskId, OwnBatch | None] = {}
        self._databases = itertools.count(slot)
        """Where the next database of this slot goes, if there are several disks."""
        self._holders: defaultdict[SubtaskId, list[Subtask]] = defaultdict(list)
        """Each holds its subtask as soon as there is one: readers and writers are made before."""

    def restore(self) -> BuiltSlot:
        """Restore the state of every subtask; the slot, which has no subtasks yet.

        StorageError or CorruptCheckpointError if that cannot be.
        """
        subtasks = self._graph.subtasks_of_slot(self._slot)
        for subtask in subtasks:
            self._gate(subtask)
        try:
            for subtask in subtasks:
                self._restore(subtask)
        except BaseException:
            self.close()
            raise
        return self._built

    def open(self, fail: Callable[[BaseException], None]) -> None:
        """Open the functions of every subtask, which is then ready to run."""
        try:
            for subtask in self._graph.subtasks_of_slot(self._slot):
                self._built.subtasks.append(self._subtask(subtask, fail))
        except BaseException:
            # What went wrong first is what its author needs to see.
            self.close()
            raise

    def forget(self) -> None:
        """After all is closed: let go of all state, while other threads run."""
        for operator in self._operators.values():
            operator.forget()

    def close(self) -> list[BaseException]:
        """Close what there is of the slot; what went wrong."""
        errors: list[BaseException] = []
        for operator in self._operators.values():
            try:
                operator.close()
            except self._environment.raised as error:
                errors.append(error)
        return errors + self._built.helpers.close()

    def _gate(self, subtask: SubtaskId) -> None:
        channels = []
        for channel in self._graph.input_channels(subtask):
            edge = self._graph.job.edges[channel.edge]
            receiver = InputChannel(
                self._release(channel), edge.input, channel, edge.partitioning.overtaken
            )
            channels.append(receiver)
            self._built.receivers[channel] = (None, receiver)  # type: ignore[assignment]
        if not channels:
            return
        exactly_once = self._deploy.settings.exactly_once
        gate = InputGate(channels, exactly_once, self._environment.clock)
        self._gates[subtask] = gate
        for channel in self._graph.input_channels(subtask):
            self._built.receivers[channel] = (gate, self._built.receivers[channel][1])

    def _release(self, channel: ChannelId) -> Callable[[], None]:
        if self._graph.slot_of(self._graph.sender_of(channel)) != self._slot:
            return lambda: self._release_remote(channel)
        # The sender's end is built later; it is there when the first buffer is released.
        return lambda: self._built.senders[channel].grant(1)

    def _snapshot(self, subtask: SubtaskId) -> SubtaskSnapshot:
        restored = self._deploy.restored.get(tuple(subtask))  # type: ignore[arg-type]
        return restored if restored is not None else SubtaskSnapshot(False)

    def _restore(self, subtask: SubtaskId) -> None:
        vertex, snapshot = self._graph.job.vertex(subtask.vertex), self._snapshot(subtask)
        if not snapshot.finished:
            for node in vertex.nodes:
                if not _touches_the_outside(node):
                    self._restore_operator(node, subtask, snapshot)
        if snapshot.in_flight:
            assert self._store is not None, "what is restored was stored"
            self._startup.restores(f"what was under way to {self._shown(vertex.head, subtask)}")
            store, gate = CountedSegments(self._store, self._startup), self._gates.get(subtask)
            self._own[subtask] = restore_channels(
                self._graph, subtask, gate, snapshot.in_flight, store
            )

    def _subtask(self, subtask: SubtaskId, fail: Callable[[BaseException], None]) -> Subtask:
        vertex, snapshot = self._graph.job.vertex(subtask.vertex), self._snapshot(subtask)
        room = Room()
        edges = self._graph.job.outputs(vertex.id)
        outputs = {edge.id: self._output(edge, subtask, room) for edge in edges}
        operators: dict[int, RuntimeOperator] = {}
        clock: EventClock | None = None
        if not snapshot.finished:
            operators = self._opened(vertex, subtask, snapshot)
            exchanges = [self._exchange(edge, outputs[edge.id]) for edge in edges]
            clock = self._event_clock(vertex, operators, snapshot)
            reuse = self._deploy.settings.object_reuse
            chain = compile_chain(vertex, operators, exchanges, room, reuse, clock)
        else:
            operators = self._ended_source(vertex.head, subtask, snapshot)
            chain = EMPTY_CHAIN
        parts = SubtaskParts(
            subtask,
            list(operators.values()),
            self._gates.get(subtask),
            list(outputs.values()),
            room,
            chain,
            self._store,
            self._deploy.attempt,
            snapshot.finished,
            snapshot.watermark,
            self._deploy.settings.step_records,
            self._buffer_timeout(vertex),
            vertex.timed,
            clock,
            self._deploy.settings.watermark_interval_ms,
            self._deploy.checkpoint,
            self._changelog_ms(),
            self._deploy.settings.compresses,
            edge_names(self._graph.job),
            self._own.get(subtask),
        )
        task = Subtask(parts, self._environment, fail)
        self._holders[subtask].append(task)
        return task

    def _event_clock(
        self,
        vertex: JobVertex,
        operators: dict[int, RuntimeOperator],
        snapshot: SubtaskSnapshot,
    ) -> EventClock | None:
        """The clock of a vertex in which event time begins."""
        found = next((n for n in vertex.nodes if strategy_of(n.operator) is not None), None)
        if found is None:
            return None
        strategy = strategy_of(found.operator)
        assert strategy is not None
        clock = EventClock(strategy, self._environment.clock, snapshot.clocks)
        metrics = operators[found.id].report.metrics
        metrics.gauge("numRecordsAheadOfTime", lambda: clock.ahead)
        metrics.gauge("numWatermarksIgnored", lambda: clock.backwards)
        return clock

    def _buffer_timeout(self, vertex: JobVertex) -> int:
        own = [n.buffer_timeout_ms for n in vertex.nodes if n.buffer_timeout_ms is not None]
        return min(own, default=self._deploy.settings.buffer_timeout_ms)

    # --- operators ----------------------------------------------------------------------------

    def _restore_operator(
        self, node: StreamNode, subtask: SubtaskId, snapshot: SubtaskSnapshot
    ) -> None:
        operator = self._operators[subtask, node.id] = self._operator(node, subtask)
        if node.uid in snapshot.operators:
            assert self._store is not None, "what is restored was stored"
            self._startup.restores(self._shown(node, subtask))
            store = CountedSegments(self._store, self._startup)
            operator.restore(snapshot.operators[node.uid], store)
        if isinstance(operator, RuntimeFunction):
            operator.times.watermark = snapshot.watermark

    def _opened(
        self, vertex: JobVertex, subtask: SubtaskId, snapshot: SubtaskSnapshot
    ) -> dict[int, RuntimeOperator]:
        for node in vertex.nodes:
            if _touches_the_outside(node):
                self._restore_operator(node, subtask, snapshot)
        operators = {node.id: self._operators[subtask, node.id] for node in vertex.nodes}
        info = self._info(vertex.head, subtask)
        edges = self._graph.job.outputs(vertex.id)
        self._open(vertex.head, subtask, lambda: self._built.helpers.open(vertex, edges, info))
        for node in vertex.nodes:
            self._open(node, subtask, operators[node.id].open)
        return operators

    def _ended_source(
        self, node: StreamNode, subtask: SubtaskId, snapshot: SubtaskSnapshot
    ) -> dict[int, RuntimeOperator]:
        """The source of a subtask that had finished, if its reader has yet to say how far it came.

        Nothing is read, and no other operator is opened again.
        """
        if node.uid not in snapshot.operators:
            return {}
        self._restore_operator(node, subtask, snapshot)
        operator = self._operators[subtask, node.id]
        self._open(node, subtask, operator.open)
        return {node.id: operator}

    def _open(self, node: StreamNode, subtask: SubtaskId, opener: Callable[[], None]) -> None:
        origin = FailureOrigin(node.name, subtask.index, node.parallelism)
        self._startup.opens(self._shown(node, subtask))
        try:
            opener()
        except IncompatibleStateError as error:
            where = f"operator {node.name!r} (uid {node.uid})"
            raise IncompatibleStateError(f"{where}: {error.message}") from None
        except PenstockError as error:
            if f"operator {node.name!r}" in error.message:
                raise
            raise located_in(error, origin) from error
        except self._environment.raised as error:
            user_tb = user_frames(error.__traceback__) or error.__traceback__
            raise user_error(error, user_tb, origin) from None

    @staticmethod
    def _shown(node: StreamNode, subtask: SubtaskId) -> str:
        return f"{node.name!r} ({subtask.index + 1}/{node.parallelism})"

    def _info(self, node: StreamNode, subtask: SubtaskId) -> SubtaskInfo:
        return SubtaskInfo(
            self._job_id,
            self._deploy.attempt,
            subtask.index,
            node.parallelism,
            node.max_parallelism,
            self._deploy.settings.fail_on_late_records,
            self._deploy.settings.job_parameters,
        )

    def _operator(self, node: StreamNode, subtask: SubtaskId) -> RuntimeOperator:
        info = self._info(node, subtask)
        spec, clock = node.operator, self._environment.clock
        if isinstance(spec, SourceOperator):
            report = OperatorReport()
            reader = self._reader(spec, subtask, info, report.metrics)
            return RuntimeSource(node, info, reader, report)
        if isinstance(spec, SinkOperator):
            report = OperatorReport()
            writer = self._writer(node, spec, subtask, info, report.metrics)
            timeout_ms = self._deploy.settings.checkpoint_timeout_ms
            if isinstance(writer, FunctionWriter):
                return RuntimeSinkFunction(node, info, writer, report, clock, timeout_ms)
            return RuntimeSink(node, info, writer, report, timeout_ms)
        if isinstance(spec, TimestampsOperator):
            return RuntimeOperator(node, info)
        if isinstance(spec, AsyncOperator):
            calls = self._environment.calls or IoCalls(self._environment.io)
            return RuntimeAsync(node, info, clock, calls)
        if spec.keyed:
            return RuntimeKeyedFunction(
                node, info, clock, self._chain_settings(), self._state_settings()
            )
        return RuntimeFunction(node, info, clock)

    def _state_settings(self) -> StateSettings:
        """The share that one keyed operator of this slot has in the memory for state."""
        subtasks = self._graph.subtasks_of_slot(self._slot)
        chains = [self._graph.job.vertex(subtask.vertex).nodes for subtask in subtasks]
        keyed = sum(node.operator.keyed for chain in chains for node in chain)
        settings = self._deploy.settings
        group = chains[0][0].slot_sharing_group
        managed = settings.group_memory.get(group, settings.state.managed)
        state = replace(settings.state, managed=managed)
        return state.shared_by(keyed).placed(next(self._databases))

    def _changelog_ms(self) -> int | None:
        settings = self._chain_settings()
        logs = settings.incremental and settings.compacts
        return self._deploy.settings.changelog_ms if logs else None

    def _chain_settings(self) -> ChainSettings:
        settings, store = self._deploy.settings, self._deploy.store
        readable = store is not None and not store.in_memory
        return ChainSettings(settings.incremental, readable, settings.compaction_fanout)

    def _reader(
        self,
        spec: SourceOperator,
        subtask: SubtaskId,
        info: SubtaskInfo,
        metrics: MetricGroup,
    ) -> Any:
        holder = self._holders[subtask]

        def wake() -> None:
            if holder:
                holder[0].source_woken()
            self._environment.wake()

        timed = self._graph.job.vertex(subtask.vertex).timed
        clock = self._environment.clock
        context = ReaderContext(info.subtask, info.parallelism, clock, wake, timed, metrics)
        return spec.source.create_reader(context)

    def _writer(
        self,
        node: StreamNode,
        spec: SinkOperator,
        subtask: SubtaskId,
        info: SubtaskInfo,
        metrics: MetricGroup,
    ) -> Any:
        holder, checkpointing = self._holders[subtask], self._deploy.store is not None
        emitter = Emitter(
            self._deploy.attempt,
            subtask,
            node.uid,
            self._environment.tell,
            (lambda: holder[0].barriers.snapshots.epoch) if checkpointing else (lambda: 0),
        )
        self._built.emitters[subtask, node.uid] = emitter
        context = WriterContext(
            info.job_id,
            node.uid,
            info.attempt,
            info.subtask,
            info.parallelism,
            self._environment.clock,
            emitter.emit,
            emitter.has_room,
            self._environment.wake,
            metrics,
        )
        return spec.sink.create_writer(context)

    # --- outputs ------------------------------------------------------------------------------

    def _output(self, edge: JobEdge, subtask: SubtaskId, room: Room) -> Output:
        channels = []
        credits = self._deploy.settings.credits
        for channel in self._graph.output_channels(edge, subtask.index):
            peer = self._graph.slot_of(self._graph.receiver_of(channel))
            if peer == self._slot:
                gate, receiver = self._built.receivers[channel]
                sender = OutputChannel(LocalPort(gate, receiver), credits, room, channel)
            else:
                transport, attempt = self._environment.transport, self._deploy.attempt
                port = RemotePort(transport, peer, attempt, channel)
                sender = OutputChannel(port, credits, room, channel)
                self._built.remote_senders[channel] = sender
            self._built.senders[channel] = sender
            channels.append(sender)
        node = next(n for n in self._graph.job.vertex(edge.source).nodes if n.id == edge.node)
        # Of a side output's records no type is known here.
        known = node.output_type if edge.tag is None else None
        immutable = known is not None and known.is_immutable()
        settings = self._deploy.settings
        return Output(
            channels,
            room,
            settings.buffer_records,
            immutable or settings.object_reuse,
            edge.partitioning.overtaken,
        )

    def _exchange(self, edge: JobEdge, output: Output) -> Exchange:
        return Exchange(edge, output, self._graph.job.vertex(edge.target).max_parallelism)


def _touches_the_outside(node: StreamNode) -> bool:
    """Whether its operator has a reader or a writer of a connector; no state is restored for it."""
    spec = node.operator
    if isinstance(spec, SinkOperator):
        return not isinstance(spec.sink, FunctionSink)
    return isinstance(spec, SourceOperator)
