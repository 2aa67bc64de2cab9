"""Streams of records, by PyFlink's names: what a user builds a program with."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from penstock.common.typeinfo import TypeInformation
from penstock.connectors.client_sinks import CollectSink, PrintSink
from penstock.connectors.function_sink import FunctionSink
from penstock.connectors.sink import Sink
from penstock.datastream.program import Upstream
from penstock.errors import ProgramError
from penstock.graph.operators import (
    FilterOperator,
    FlatMapOperator,
    FunctionOperator,
    MapOperator,
    Operator,
    ProcessOperator,
    ReduceOperator,
    SinkOperator,
)
from penstock.graph.partitioning import (
    BroadcastPartitioning,
    CustomPartitioning,
    ForwardPartitioning,
    HashPartitioning,
    Partitioning,
    RebalancePartitioning,
)
from penstock.graph.stream_graph import Chaining, StreamNode
from penstock.runtime.functions import KeyedProcessFunction

if TYPE_CHECKING:
    from penstock.datastream.results import CloseableIterator
    from penstock.datastream.stream_execution_environment import StreamExecutionEnvironment


class DataStream:
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
        select = _callable(key_selector, "get_key", "key_by")
        return KeyedStream(self._env, self._spread(HashPartitioning(select)), select)

    def union(self, *streams: DataStream) -> DataStream:
        """This stream and others, as one."""
        upstreams = self._upstreams
        for stream in streams:
            if stream._env is not self._env:
                raise ProgramError("union() of streams that belong to different environments")
            upstreams += stream._upstreams
        return DataStream(self._env, upstreams)

    # --- partitioning -------------------------------------------------------------------------

    def rebalance(self) -> DataStream:
        """Records go to the next operator's subtasks in turns."""
        return DataStream(self._env, self._spread(RebalancePartitioning()))

    def forward(self) -> DataStream:
        """Records stay in the subtask of the same number."""
        return DataStream(self._env, self._spread(ForwardPartitioning()))

    def broadcast(self) -> DataStream:
        """Every subtask of the next operator gets every record."""
        return DataStream(self._env, self._spread(BroadcastPartitioning()))

    def partition_custom(self, partitioner: Any, key_selector: Any) -> DataStream:
        """`partitioner(key, number_of_partitions)` names the subtask for each record."""
        partition = _callable(partitioner, "partition", "partition_custom")
        select = _callable(key_selector, "get_key", "partition_custom")
        return DataStream(self._env, self._spread(CustomPartitioning(partition, select)))

    # --- sinks --------------------------------------------------------------------------------

    def sink_to(self, sink: Sink) -> DataStreamSink:
        """Write the records to `sink`."""
        if not isinstance(sink, Sink):
            raise ProgramError(f"sink_to() needs a Sink, not a {type(sink).__name__}")
        return DataStreamSink(self._env, self._node("Sink", SinkOperator(sink), None))

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

    def execute_and_collect(
        self, job_execution_name: str | None = None, limit: int | None = None
    ) -> CloseableIterator | list[Any]:
        """Run the program and iterate over the records of this stream; a list with a limit."""
        collecting = self.sink_to(CollectSink()).name("Collect")
        results = self._env._execute_collecting(collecting._node_id, job_execution_name)
        if limit is None:
            return results
        with results:
            return list(itertools.islice(results, limit))

    # --- settings of the last operator --------------------------------------------------------

    def name(self, name: str) -> DataStream:
        return self._set(name=name)

    def uid(self, uid: str) -> DataStream:
        """The identity of the operator's state, which survives changes of the program."""
        return self._set(uid=uid)

    def set_parallelism(self, parallelism: int) -> DataStream:
        return self._set(parallelism=parallelism)

    def set_max_parallelism(self, max_parallelism: int) -> DataStream:
        return self._set(max_parallelism=max_parallelism)

    def start_new_chain(self) -> DataStream:
        return self._set(chaining=Chaining.HEAD)

    def disable_chaining(self) -> DataStream:
        return self._set(chaining=Chaining.NEVER)

    def slot_sharing_group(self, slot_sharing_group: str) -> DataStream:
        return self._set(slot_sharing_group=slot_sharing_group)

    # --- inside -------------------------------------------------------------------------------

    def _set(self, **changes: Any) -> DataStream:
        if len(self._upstreams) != 1 or self._upstreams[0].partitioning is not None:
            raise ProgramError(
                f"{next(iter(changes))} can be set on an operator only, directly behind it"
            )
        self._env._program.change(self._upstreams[0].node, **changes)
        return self

    def _spread(self, partitioning: Partitioning) -> tuple[Upstream, ...]:
        return tuple(Upstream(upstream.node, partitioning) for upstream in self._upstreams)

    def _type(self) -> TypeInformation | None:
        types = {self._env._program.nodes[u.node].output_type for u in self._upstreams}
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
        node = self._node(name, kind(func, bound), output_type)
        return DataStream(self._env, (Upstream(node, None),))

    def _node(self, name: str, operator: Operator, output_type: TypeInformation | None) -> int:
        program = self._env._program
        # A group is inherited when all inputs agree on it, as in Flink.
        groups = {program.nodes[upstream.node].slot_sharing_group for upstream in self._upstreams}
        node = StreamNode(
            program.next_id(),
            name,
            operator,
            self._env.get_parallelism(),
            self._env.get_max_parallelism(),
            output_type=output_type,
        )
        node_id = program.add(node, self._upstreams)
        if len(groups) == 1:
            program.change(node_id, slot_sharing_group=groups.pop())
        return node_id


class KeyedStream(DataStream):
    """A stream by key."""

    def __init__(
        self,
        env: StreamExecutionEnvironment,
        upstreams: tuple[Upstream, ...],
        key_selector: Callable[[Any], Any],
    ) -> None:
        super().__init__(env, upstreams)
        self._key_selector = key_selector

    def process(
        self, func: KeyedProcessFunction, output_type: TypeInformation | None = None
    ) -> DataStream:
        """Apply a function with state and timers of the record's key."""
        if not isinstance(func, KeyedProcessFunction):
            raise ProgramError(
                f"process() on a keyed stream needs a KeyedProcessFunction, not a "
                f"{type(func).__name__}"
            )
        operator = ProcessOperator(func, "process_element", self._key_selector)
        node = self._node("KeyedProcess", operator, output_type)
        return DataStream(self._env, (Upstream(node, None),))

    def reduce(self, func: Any, output_type: TypeInformation | None = None) -> DataStream:
        """A running reduction per key: for every record the value so far."""
        bound = "reduce" if hasattr(func, "reduce") else None
        if bound is None and not callable(func):
            raise ProgramError(f"reduce() needs a function, not a {type(func).__name__}")
        operator = ReduceOperator(func, bound, self._key_selector)
        node = self._node("Reduce", operator, output_type or self._type())
        return DataStream(self._env, (Upstream(node, None),))


class DataStreamSink:
    """The end of a stream, for settings."""

    def __init__(self, env: StreamExecutionEnvironment, node: int) -> None:
        self._env = env
        self._node_id = node

    def name(self, name: str) -> DataStreamSink:
        return self._set(name=name)

    def uid(self, uid: str) -> DataStreamSink:
        return self._set(uid=uid)

    def set_parallelism(self, parallelism: int) -> DataStreamSink:
        return self._set(parallelism=parallelism)

    def disable_chaining(self) -> DataStreamSink:
        return self._set(chaining=Chaining.NEVER)

    def slot_sharing_group(self, slot_sharing_group: str) -> DataStreamSink:
        return self._set(slot_sharing_group=slot_sharing_group)

    def _set(self, **changes: Any) -> DataStreamSink:
        self._env._program.change(self._node_id, **changes)
        return self


def _callable(value: Any, method: str, what: str) -> Callable[..., Any]:
    bound = getattr(value, method, None)
    if bound is not None:
        return bound  # type: ignore[no-any-return]
    if not callable(value):
        raise ProgramError(
            f"{what}() needs a function or an object with a method {method}, not a "
            f"{type(value).__name__}"
        )
    return value  # type: ignore[no-any-return]
