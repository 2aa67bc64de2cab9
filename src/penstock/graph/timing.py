"""Where records need their timestamps.

A timestamp costs as much as a small record, so it travels only where it was given *and* where
somebody behind asks for it: a window, a function with a context, a sink that writes it.
"""

from __future__ import annotations

from penstock.common.watermark_strategy import WatermarkStrategy
from penstock.errors import ProgramError
from penstock.graph.operators import (
    CONTEXT_OPERATORS,
    FilterOperator,
    FlatMapOperator,
    FunctionOperator,
    MapOperator,
    Operator,
    SinkOperator,
    SourceOperator,
    TimestampsOperator,
)
from penstock.graph.stream_graph import StreamEdge, StreamGraph


def timed_nodes(graph: StreamGraph) -> frozenset[int]:
    """The nodes whose input records come with their timestamps (or None).

    Among them sources whose records have timestamps of their own, if anybody asks for those.
    """
    has_time = _with_time(graph)
    wanted: set[int] = set()
    for node in reversed(graph.nodes):
        downstream = any(edge.target in wanted for edge in graph.outputs(node.id))
        if downstream or _reads_time(node.operator):
            wanted.add(node.id)
    return frozenset(
        node.id
        for node in graph.nodes
        if node.id in wanted
        and (any(e.source in has_time for e in graph.inputs(node.id)) or _own_time(node.operator))
    )


def strategy_of(operator: Operator) -> WatermarkStrategy | None:
    """The strategy of an operator at which timestamps and watermarks begin."""
    if isinstance(operator, SourceOperator | TimestampsOperator):
        return operator.strategy
    return None


def check_timestamps(graph: StreamGraph) -> None:
    """ProgramError where watermarks are to be made of timestamps that nobody gives."""
    has_time = _with_time(graph)
    for node in graph.nodes:
        strategy = strategy_of(node.operator)
        if strategy is None or strategy.assigner is not None:
            continue
        before = {edge.source for edge in graph.inputs(node.id)}
        if not _own_time(node.operator) and not before <= has_time:
            raise ProgramError(
                f"operator {node.name!r}: its records have no timestamps to make watermarks of; "
                "add .with_timestamp_assigner(lambda value, record_timestamp: ...) to its strategy"
            )


def _with_time(graph: StreamGraph) -> set[int]:
    """The nodes whose output may have timestamps."""
    has_time: set[int] = set()
    for node in graph.nodes:
        upstream = any(edge.source in has_time for edge in graph.inputs(node.id))
        if upstream or _gives_time(node.operator):
            has_time.add(node.id)
    return has_time


def may_begin_below(graph: StreamGraph, edge: StreamEdge, fused: frozenset[int]) -> bool:
    """Whether the target of `edge`, at which watermarks begin, may be in its source's chain.

    A chain has one event time. So nothing before the operator may look at it, and nothing may
    branch off before; `fused` are the nodes that are in one chain with what feeds them.
    """
    node = graph.node(edge.source)
    while True:
        if len(graph.outputs(node.id)) != 1 or not _blind_to_time(node.operator):
            return False
        if node.id not in fused:
            return True
        node = graph.node(graph.inputs(node.id)[0].source)


def _own_time(operator: Operator) -> bool:
    return isinstance(operator, SourceOperator) and operator.source.timed


def _gives_time(operator: Operator) -> bool:
    if isinstance(operator, SourceOperator):
        return operator.source.timed or operator.strategy is not None
    timed = isinstance(operator, FunctionOperator) and operator.timed_results
    return timed or isinstance(operator, TimestampsOperator)


def _reads_time(operator: Operator) -> bool:
    if isinstance(operator, SinkOperator):
        return operator.sink.timed
    if isinstance(operator, SourceOperator):
        return operator.strategy is not None
    return isinstance(operator, (*CONTEXT_OPERATORS, TimestampsOperator))


def _blind_to_time(operator: Operator) -> bool:
    if isinstance(operator, SourceOperator):
        return operator.strategy is None
    stateless = isinstance(operator, MapOperator | FlatMapOperator | FilterOperator)
    return stateless and not operator.keyed
