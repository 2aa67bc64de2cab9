"""Streams of records, by PyFlink's names: what a user builds a program with."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Any, overload

from penstock.common.output_tag import OutputTag
from penstock.common.typeinfo import TypeInformation
from penstock.common.watermark_strategy import WatermarkStrategy
from penstock.connectors.client_sinks import CollectSink, PrintSink
from penstock.connectors.function_sink import FunctionSink
from penstock.connectors.sink import Sink
from penstock.datastream import accumulate
from penstock.datastream.accumulate import Projection
from penstock.datastream.checks import need, need_callable, refuse_generator
from penstock.datastream.data_stream_sink import DataStreamSink
from penstock.datastream.nodes import add_node
from penstock.datastream.operator_settings import OperatorSettings
from penstock.datastream.program import Upstream
from penstock.errors import ProgramError
from penstock.graph.operators import (
    CONTEXT_OPERATORS,
    FilterOperator,
    FlatMapOperator,
    FunctionOperator,
    MapOperator,
    Operator,
    ProcessOperator,
    SinkOperator,
    TimestampsOperator,
)
from penstock.graph.partitioning import (
    BroadcastPartitioning,
    CustomPartitioning,
    ForwardPartitioning,
    GlobalPartitioning,
    HashPartitioning,
    Partitioning,
    RebalancePartitioning,
    RescalePartitioning,
    ShufflePartitioning,
)
from penstock.graph.stream_graph import Chaining
from penstock.graph.timing import strategy_of
from penstock.graph.typed_keys import TypedKeySelector
from penstock.runtime.functions import Function, ProcessFunction
from penstock.runtime.windowing.assigners import WindowAssigner
from penstock.runtime.windowing.fixed_windows import count_windows
from penstock.state.descriptors import MapStateDescriptor

if TYPE_CHECKING:
    from typing_extensions import Self

    from penstock.common.execution_config import ExecutionConfig
    from penstock.datastream.cached_streams import CachedDataStream
    from penstock.datastream.connected_streams import BroadcastStream
    from penstock.datastream.joined_streams import CoGroupedStreams, JoinedStreams
    from penstock.datastream.keyed_stream import KeyedStream
    from penstock.datastream.results import CloseableIterator
    from penstock.datastream.stream_execution_environment import StreamExecutionEnvironment
    from penstock.datastream.windowed_streams import AllWindowedStream

FOREVER_MS = 2**53
"""A buffer timeout that never passes."""


class DataStream(OperatorSettings):
    """A stream of records."""

    def __init__(self, env: StreamExecutionEnvironment, upstreams: tuple[Upstream, ...]) -> None:
        self._env = env
        self._upstreams = upstreams

    # --- transformations ----------------------------------------------------------------------

    def map(self, func: Any, output_type: TypeInformation | None = None) -> DataStream:
        """One record for one record."""
        return self._apply("Map", MapOperator, func, "map", output_type)

    def flat_map(self, func: Any, output_type: TypeInformation | None = None) -> DataStream:
        """Any number of records for one record: `func` returns an iterable or is a generator."""
        return self._apply("Flat Map", FlatMapOperator, func, "flat_map", output_type)

    def filter(self, func: Any) -> DataStream:
        """Only the records for which `func` is true."""
        return self._apply("Filter", FilterOperator, func, "filter", self._type())

    def key_by(self, key_selector: Any, key_type: TypeInformation | None = None) -> KeyedStream:
        """The stream by key: records of one key go to one subtask and share its state."""
        from penstock.datastream.keyed_stream import KeyedStream

        select = need_callable(key_selector, "get_key", "key_by")
        if key_type is not None:
            select = TypedKeySelector.of(select, key_type)
        return KeyedStream(self._env, self._spread(HashPartitioning(select)), select, self)

    def union(self, *streams: DataStream) -> DataStream:
        """This stream and others, as one; they must not be declared to be of different types."""
        upstreams, declared = self._upstreams, self._type()
        for stream in streams:
            if stream._env is not self._env:
                raise ProgramError("union() of streams that belong to different environments")
            other = stream._type()
            if declared is not None and other is not None and declared != other:
                raise ProgramError(
                    f"union() of streams of {declared} and of {other}: declare one type for both, "
                    "or none for one of them"
                )
            declared = declared or other
            upstreams += stream._unkeyed()._upstreams
        return DataStream(self._env, upstreams)

    def process(self, func: Function, output_type: TypeInformation | None = None) -> DataStream:
        """Apply a function that may have side outputs."""
        need(func, ProcessFunction, "process() on a stream that is not keyed")
        operator = ProcessOperator(func, "process_element")
        return self._stream("Process", operator, output_type)

    def assign_timestamps_and_watermarks(self, watermark_strategy: WatermarkStrategy) -> DataStream:
        """Give records timestamps, and the stream watermarks, by a strategy of their own.

        Watermarks that the stream had before are left out, but for the one at its end.
        """
        need(watermark_strategy, WatermarkStrategy, "assign_timestamps_and_watermarks()")
        operator = TimestampsOperator(watermark_strategy)
        return self._stream("Timestamps/Watermarks", operator, self._type())

    def connect(self, ds: DataStream | BroadcastStream) -> Any:
        """This stream and another, to be processed by one function that tells them apart."""
        from penstock.datastream import connected_streams as connected

        if isinstance(ds, connected.BroadcastStream):
            return connected.BroadcastConnectedStream(self, ds, ds.broadcast_state_descriptors)
        need(ds, DataStream, "connect()")
        return connected.ConnectedStreams(self, ds)

    def window_all(self, window_assigner: WindowAssigner[Any, Any]) -> AllWindowedStream:
        """The stream in windows, all records together: one subtask does the work."""
        from penstock.datastream.windowed_streams import AllWindowedStream

        return AllWindowedStream(self, window_assigner)

    def count_window_all(self, size: int, slide: int = 0) -> AllWindowedStream:
        """Windows of `size` records; with a slide, one that begins every so many records."""
        return self.window_all(count_windows(size, slide))

    def join(self, other_stream: DataStream) -> JoinedStreams:
        """Pairs of records of both streams with equal keys in one window.

        `a.join(b).where(key_of_a).equal_to(key_of_b).window(assigner).apply(function)`
        """
        from penstock.datastream.joined_streams import JoinedStreams

        return JoinedStreams(self, other_stream)

    def co_group(self, other_stream: DataStream) -> CoGroupedStreams:
        """All records of both streams with equal keys in one window, as two lists."""
        from penstock.datastream.joined_streams import CoGroupedStreams

        return CoGroupedStreams(self, other_stream)

    def get_side_output(self, output_tag: OutputTag) -> DataStream:
        """The records that the function behind this stream sent to `output_tag`."""
        need(output_tag, OutputTag, "get_side_output()")
        upstreams = self._upstreams
        for upstream in upstreams:
            node = self._env._program.nodes[upstream.node]
            strategy = strategy_of(node.operator)
            diverted = strategy is not None and strategy.diverts_to(output_tag)
            if not diverted and not isinstance(node.operator, CONTEXT_OPERATORS):
                raise ProgramError(
                    f"operator {node.name!r} has no side outputs: only process functions have; "
                    "call get_side_output() on what process() returned"
                )
            self._note_tag(upstream.node, output_tag)
        tagged = tuple(Upstream(upstream.node, None, output_tag.tag_id) for upstream in upstreams)
        return DataStream(self._env, tagged)

    def _note_tag(self, node: int, tag: OutputTag) -> None:
        """Two readers of one side output must not expect different types."""
        if tag.type_info is None:
            return
        program = self._env._program
        types = dict(program.nodes[node].side_types)
        known = types.setdefault(tag.tag_id, tag.type_info)
        program.change(node, side_types=tuple(types.items()))
        if known != tag.type_info:
            raise ProgramError(
                f"side output {tag.tag_id!r} of operator {self.get_name()!r} is read as {known} "
                f"and as {tag.type_info}: an OutputTag has one type"
            )

    def project(self, *field_indexes: int) -> DataStream:
        """Of every tuple or row the fields at these positions, as a tuple."""
        if not field_indexes or not all(isinstance(index, int) for index in field_indexes):
            raise ProgramError("project() needs the positions of the fields, as numbers")
        project = Projection(field_indexes)
        return self._apply("Projection", MapOperator, project, "map", None)

    def cache(self) -> CachedDataStream:
        """This stream, whose records the first job that ends well keeps for the next ones.

        For streams that end, and whose records fit into the driver's memory.
        """
        from penstock.datastream.cached_streams import CachedDataStream
        from penstock.datastream.program import CachedRecords

        node = self._node("Cache", MapOperator(accumulate.same, None), self._type())
        records = self._env._program.caches[node] = CachedRecords()
        return CachedDataStream(self._env, (Upstream(node, None),), records)

    # --- partitioning -------------------------------------------------------------------------

    def rebalance(self) -> DataStream:
        """Records go to the next operator's subtasks in turns."""
        return DataStream(self._env, self._spread(RebalancePartitioning()))

    def rescale(self) -> DataStream:
        """In turns, each subtask to its own share of the next operator's: fewer channels."""
        return DataStream(self._env, self._spread(RescalePartitioning()))

    def shuffle(self) -> DataStream:
        """Records go to the next operator's subtasks at random."""
        return DataStream(self._env, self._spread(ShufflePartitioning()))

    def global_(self) -> DataStream:
        """All records go to the first subtask of the next operator."""
        return DataStream(self._env, self._spread(GlobalPartitioning()))

    def forward(self) -> DataStream:
        """Records stay in the subtask of the same number."""
        return DataStream(self._env, self._spread(ForwardPartitioning()))

    def broadcast(
        self,
        broadcast_state_descriptor: MapStateDescriptor | None = None,
        *other_broadcast_state_descriptors: MapStateDescriptor,
    ) -> Any:
        """Every subtask of the next operator gets every record.

        With descriptors: a stream to connect another one with, whose records are kept in these
        broadcast states.
        """
        upstreams = self._spread(BroadcastPartitioning())
        if broadcast_state_descriptor is None:
            return DataStream(self._env, upstreams)
        from penstock.datastream.connected_streams import BroadcastStream

        descriptors = (broadcast_state_descriptor, *other_broadcast_state_descriptors)
        for descriptor in descriptors:
            need(descriptor, MapStateDescriptor, "broadcast()")
        return BroadcastStream(DataStream(self._env, upstreams), list(descriptors))

    def partition_custom(self, partitioner: Any, key_selector: Any) -> DataStream:
        """`partitioner(key, number_of_partitions)` names the subtask for each record."""
        partition = need_callable(partitioner, "partition", "partition_custom")
        select = need_callable(key_selector, "get_key", "partition_custom")
        return DataStream(self._env, self._spread(CustomPartitioning(partition, select)))

    # --- sinks --------------------------------------------------------------------------------

    def sink_to(self, sink: Sink) -> DataStreamSink:
        """Write the records to `sink`."""
        from penstock.datastream.connectors.base import SupportsPreprocessing

        if not isinstance(sink, Sink):
            raise ProgramError(f"sink_to() needs a Sink, not a {type(sink).__name__}")
        transformer = sink.get_transformer() if isinstance(sink, SupportsPreprocessing) else None
        prepared = self if transformer is None else transformer.apply(self)
        operator = SinkOperator(sink.for_type(prepared._type()))
        return DataStreamSink(self._env, prepared._node("Sink", operator, None))

    def add_sink(self, sink_func: Any) -> DataStreamSink:
        """Hand every record to a function, or to an object with a method `invoke`.

        After a restart the records since the last checkpoint come again: at least once.
        """
        if isinstance(sink_func, Sink):
            return self.sink_to(sink_func)
        return self.sink_to(FunctionSink(sink_func))

    def print(self, sink_identifier: str | None = None) -> DataStreamSink:
        """Print the records in the terminal of the program."""
        return self.sink_to(PrintSink(sink_identifier)).name("Print")

    @overload
    def execute_and_collect(
        self, job_execution_name: str | None = None, limit: None = None
    ) -> CloseableIterator: ...

    @overload
    def execute_and_collect(
        self, job_execution_name: str | None = None, *, limit: int
    ) -> list[Any]: ...

    @overload
    def execute_and_collect(self, job_execution_name: str | None, limit: int) -> list[Any]: ...

    def execute_and_collect(
        self, job_execution_name: str | None = None, limit: int | None = None
    ) -> CloseableIterator | list[Any]:
        """Run the program and iterate over the records of this stream; a list with a limit.

        One subtask collects the records. Those of one subtask before it come in their order, as
        do those of a stream that has parallelism 1: a collection comes back as it is.
        """
        collecting = self.sink_to(CollectSink()).name("Collect").set_parallelism(1)
        results = self._env._execute_collecting(collecting._node_id, job_execution_name)
        if limit is None:
            return results
        with results:
            return list(itertools.islice(results, limit))

    # --- settings of the last operator --------------------------------------------------------

    def get_name(self) -> str:
        """The name of the operator behind this stream."""
        return self._env._program.nodes[self._upstreams[0].node].name

    def get_type(self) -> TypeInformation | None:
        """The declared type of the records; None if none was declared."""
        return self._type()

    def get_execution_environment(self) -> StreamExecutionEnvironment:
        """The environment in which this stream is built."""
        return self._env

    def get_execution_config(self) -> ExecutionConfig:
        """The settings of the environment's execution."""
        return self._env.get_config()

    def force_non_parallel(self) -> Self:
        """Run the operator in one subtask, whatever the parallelism of the rest."""
        return self._set(parallelism=1, max_parallelism=1)

    def set_buffer_timeout(self, timeout_millis: int) -> Self:
        """How long buffers of the operator's chain may gather; -1: until they are full.

        Where operators of one chain differ, the shortest holds.
        """
        return self._set(buffer_timeout_ms=FOREVER_MS if timeout_millis == -1 else timeout_millis)

    def set_max_parallelism(self, max_parallelism: int) -> Self:
        """The number of the operator's key groups."""
        return self._set(max_parallelism=max_parallelism)

    def start_new_chain(self) -> Self:
        """Do not fuse the operator with what is before it."""
        return self._set(chaining=Chaining.HEAD)

    # --- inside -------------------------------------------------------------------------------

    def _set(self, **changes: Any) -> Self:
        if len(self._upstreams) != 1 or self._upstreams[0].partitioning is not None:
            raise ProgramError(
                f"{next(iter(changes))} can be set on an operator only, directly behind it"
            )
        self._env._program.change(self._upstreams[0].node, **changes)
        return self

    def _spread(self, partitioning: Partitioning) -> tuple[Upstream, ...]:
        return tuple(replace(upstream, partitioning=partitioning) for upstream in self._upstreams)

    def _type(self) -> TypeInformation | None:
        nodes = self._env._program.nodes
        types = {
            nodes[u.node].output_type
            if u.tag is None
            else dict(nodes[u.node].side_types).get(u.tag)
            for u in self._upstreams
        }
        return types.pop() if len(types) == 1 else None

    def _apply(
        self,
        name: str,
        kind: Callable[..., FunctionOperator],
        func: Any,
        method: str,
        output_type: TypeInformation | None,
    ) -> DataStream:
        bound = method if hasattr(func, method) else None
        if bound is None and not callable(func):
            raise ProgramError(
                f"{method}() needs a function or an object with a method {method}, not a "
                f"{type(func).__name__}"
            )
        called = getattr(func, method) if bound else func
        if method in ("map", "filter"):
            refuse_generator(called, method)
        return self._stream(name, kind(func, bound, self._key_for(func)), output_type)

    def _unkeyed(self) -> DataStream:
        """The stream as it was before key_by()."""
        return self

    def _key_for(self, func: Any) -> Callable[[Any], Any] | None:
        """The key selector, if `func` may ask for state of the key."""
        return None

    def _stream(
        self, name: str, operator: Operator, output_type: TypeInformation | None
    ) -> DataStream:
        """What an operator makes of this stream."""
        return DataStream(self._env, (Upstream(self._node(name, operator, output_type), None),))

    def _node(self, name: str, operator: Operator, output_type: TypeInformation | None) -> int:
        return add_node(self._env, name, operator, output_type, self._upstreams)
