"""Two streams and one function, by PyFlink's names."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from penstock.common.typeinfo import TypeInformation
from penstock.datastream.checks import need, refuse_generator
from penstock.datastream.keyed_stream import KeyedStream
from penstock.datastream.nodes import add_node
from penstock.datastream.program import Upstream
from penstock.datastream.streams import DataStream
from penstock.errors import ProgramError
from penstock.graph.operators import (
    BroadcastProcessOperator,
    CoFlatMapOperator,
    CoMapOperator,
    CoProcessOperator,
    TwoInputOperator,
)
from penstock.runtime.functions import Function
from penstock.runtime.two_input_functions import (
    BroadcastProcessFunction,
    CoFlatMapFunction,
    CoMapFunction,
    CoProcessFunction,
    KeyedBroadcastProcessFunction,
    KeyedCoProcessFunction,
)
from penstock.state.descriptors import MapStateDescriptor

if TYPE_CHECKING:
    from collections.abc import Callable


class ConnectedStreams:
    """Two streams whose records one function sees, each in its own method."""

    def __init__(self, stream1: DataStream, stream2: DataStream) -> None:
        if stream1._env is not stream2._env:
            raise ProgramError("connect() of streams that belong to different environments")
        self.stream1 = stream1
        self.stream2 = stream2

    def key_by(
        self,
        key_selector1: Any,
        key_selector2: Any,
        key_type: TypeInformation | None = None,
    ) -> ConnectedStreams:
        """Both streams by key: records with equal keys meet in one subtask and share state."""
        return ConnectedStreams(
            self.stream1.key_by(key_selector1, key_type),
            self.stream2.key_by(key_selector2, key_type),
        )

    def map(self, func: CoMapFunction, output_type: TypeInformation | None = None) -> DataStream:
        """One record for one record, of either stream; none where the function returns None."""
        need(func, CoMapFunction, "map() on connected streams")
        refuse_generator(func.map1, "map1")
        refuse_generator(func.map2, "map2")
        return self._apply("Co-Map", CoMapOperator, func, ("map1", "map2"), output_type)

    def flat_map(
        self, func: CoFlatMapFunction, output_type: TypeInformation | None = None
    ) -> DataStream:
        """Any number of records for one record, of either stream."""
        need(func, CoFlatMapFunction, "flat_map() on connected streams")
        methods = ("flat_map1", "flat_map2")
        return self._apply("Co-Flat Map", CoFlatMapOperator, func, methods, output_type)

    def process(
        self,
        func: CoProcessFunction | KeyedCoProcessFunction,
        output_type: TypeInformation | None = None,
    ) -> DataStream:
        """A function with side outputs; with state and timers if both streams are keyed."""
        keyed = self._both_keyed()
        kind = KeyedCoProcessFunction if keyed else CoProcessFunction
        which = "keyed connected streams" if keyed else "connected streams that are not keyed"
        need(func, kind, f"process() on {which}")
        methods = ("process_element1", "process_element2")
        name = "Keyed Co-Process" if keyed else "Co-Process"
        return self._apply(name, CoProcessOperator, func, methods, output_type)

    def _both_keyed(self) -> bool:
        """Whether the streams are keyed; ProgramError if only one is."""
        keyed = {isinstance(stream, KeyedStream) for stream in (self.stream1, self.stream2)}
        if len(keyed) > 1:
            raise ProgramError(
                "connect() of a keyed stream and one that is not: key both, or use "
                "connect(...).key_by(selector1, selector2)"
            )
        return keyed.pop()

    def _apply(
        self,
        name: str,
        kind: Callable[..., TwoInputOperator],
        func: Function,
        methods: tuple[str, str],
        output_type: TypeInformation | None,
    ) -> DataStream:
        self._both_keyed()
        first, second = self.stream1, self.stream2
        operator = kind(
            func,
            methods[0],
            first._key_for(func),
            second_method=methods[1],
            second_key_selector=second._key_for(func),
        )
        return _two_inputs(name, operator, output_type, first, second)


class BroadcastStream:
    """A stream that goes to every subtask and is kept in broadcast state."""

    def __init__(
        self, input_stream: DataStream, broadcast_state_descriptors: list[MapStateDescriptor]
    ) -> None:
        self.input_stream = input_stream
        self.broadcast_state_descriptors = broadcast_state_descriptors
        names = [descriptor.name for descriptor in broadcast_state_descriptors]
        if len(set(names)) != len(names):
            raise ProgramError(f"broadcast() with two states of one name: {names}")


class BroadcastConnectedStream:
    """A stream, and another that tells all its subtasks what they need to know."""

    def __init__(
        self,
        non_broadcast_stream: DataStream,
        broadcast_stream: BroadcastStream,
        broadcast_state_descriptors: list[MapStateDescriptor],
    ) -> None:
        if non_broadcast_stream._env is not broadcast_stream.input_stream._env:
            raise ProgramError("connect() of streams that belong to different environments")
        self.non_broadcast_stream = non_broadcast_stream
        self.broadcast_stream = broadcast_stream
        self.broadcast_state_descriptors = broadcast_state_descriptors

    def process(
        self,
        func: BroadcastProcessFunction | KeyedBroadcastProcessFunction,
        output_type: TypeInformation | None = None,
    ) -> DataStream:
        """Apply a function that reads the broadcast state, and writes it on the other side."""
        stream = self.non_broadcast_stream
        keyed = isinstance(stream, KeyedStream)
        kind = KeyedBroadcastProcessFunction if keyed else BroadcastProcessFunction
        which = "a keyed stream" if keyed else "a stream that is not keyed"
        need(func, kind, f"process() on {which} connected with a broadcast one")
        operator = BroadcastProcessOperator(
            func,
            "process_element",
            stream._key_for(func),
            second_method="process_broadcast_element",
            states=tuple(descriptor.name for descriptor in self.broadcast_state_descriptors),
        )
        name = "Keyed Broadcast Process" if keyed else "Broadcast Process"
        side = self.broadcast_stream.input_stream
        return _two_inputs(name, operator, output_type, stream, side)


def _two_inputs(
    name: str,
    operator: TwoInputOperator,
    output_type: TypeInformation | None,
    first: DataStream,
    second: DataStream,
) -> DataStream:
    upstreams = first._upstreams + tuple(replace(u, input=1) for u in second._upstreams)
    node = add_node(first._env, name, operator, output_type, upstreams)
    return DataStream(first._env, (Upstream(node, None),))
