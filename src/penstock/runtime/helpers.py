"""Key selectors and partitioners that are objects: opened once per slot, and closed with it.

One object serves both ends of an exchange, and all subtasks of the slot, so it belongs to none of
them.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from penstock.graph.job_graph import JobEdge, JobVertex
from penstock.graph.operators import FunctionOperator, TwoInputOperator
from penstock.graph.partitioning import CustomPartitioning, HashPartitioning
from penstock.graph.stream_graph import StreamNode
from penstock.graph.typed_keys import TypedKeySelector
from penstock.runtime.context import OperatorContext, SubtaskInfo
from penstock.runtime.environment import RAISED
from penstock.runtime.functions import Function


class Helpers:
    """The selectors and partitioners of one slot."""

    def __init__(self) -> None:
        self._opened: dict[int, Function] = {}

    def open(self, vertex: JobVertex, edges: list[JobEdge], info: SubtaskInfo) -> None:
        """Open what `vertex` and its outputs use and nobody has opened yet."""
        for node, function in _functions(vertex, edges):
            called = function.select if isinstance(function, TypedKeySelector) else function
            owner = getattr(called, "__self__", None)
            if isinstance(owner, Function) and id(owner) not in self._opened:
                self._opened[id(owner)] = owner
                owner.open(OperatorContext(node.name, info, None, None))

    def close(self) -> list[BaseException]:
        """Close them all; what went wrong."""
        errors: list[BaseException] = []
        while self._opened:
            _, owner = self._opened.popitem()
            try:
                owner.close()
            except RAISED as error:
                errors.append(error)
        return errors


def _functions(vertex: JobVertex, edges: list[JobEdge]) -> Iterator[tuple[StreamNode, Any]]:
    for node in vertex.nodes:
        if isinstance(node.operator, FunctionOperator):
            yield node, node.operator.key_selector
        if isinstance(node.operator, TwoInputOperator):
            yield node, node.operator.second_key_selector
        for edge in edges:
            if edge.node == node.id and isinstance(
                edge.partitioning, HashPartitioning | CustomPartitioning
            ):
                yield node, edge.partitioning.key_selector
                if isinstance(edge.partitioning, CustomPartitioning):
                    yield node, edge.partitioning.partition
