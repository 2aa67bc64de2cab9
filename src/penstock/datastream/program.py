"""The program under construction: nodes and edges, added by the API in the order it is called."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

from penstock.errors import ProgramError
from penstock.graph.operators import SinkOperator
from penstock.graph.partitioning import (
    ForwardPartitioning,
    Partitioning,
    RebalancePartitioning,
)
from penstock.graph.stream_graph import StreamEdge, StreamGraph, StreamNode


@dataclass(frozen=True)
class Upstream:
    """Records of a node, to be spread in this way; None: forward or rebalance, as fits."""

    node: int
    partitioning: Partitioning | None
    tag: str | None = None
    """The side output they come from; None: the main output."""
    input: int = 0
    """Which input of the next operator they are for."""


@dataclass
class Program:
    """What the calls so far amount to."""

    nodes: dict[int, StreamNode] = field(default_factory=dict)
    inputs: dict[int, tuple[Upstream, ...]] = field(default_factory=dict)
    executed: frozenset[int] = frozenset()
    """Sinks that an earlier execute() ran. Streams before them may be used again."""

    def add(self, node: StreamNode, inputs: tuple[Upstream, ...]) -> int:
        self.nodes[node.id] = node
        self.inputs[node.id] = inputs
        return node.id

    def next_id(self) -> int:
        return len(self.nodes) + 1

    def change(self, node_id: int, **changes: Any) -> None:
        self.nodes[node_id] = replace(self.nodes[node_id], **changes)

    def stream_graph(self) -> StreamGraph:
        """The program that ends in the sinks added since the last execute()."""
        if self.executed and not self._sinks() - self.executed:
            raise ProgramError(
                "all of the program was executed before, and no sink has been added since: "
                "nothing to execute"
            )
        wanted = self._needed_by(self._sinks() - self.executed)
        edges = [
            StreamEdge(
                upstream.node,
                target,
                self._partitioning(upstream, target),
                upstream.input,
                upstream.tag,
            )
            for target, upstreams in self.inputs.items()
            for upstream in upstreams
            if target in wanted
        ]
        return StreamGraph.build([self.nodes[node] for node in sorted(wanted)], edges)

    def mark_executed(self) -> None:
        self.executed = frozenset(self._sinks())

    def _sinks(self) -> set[int]:
        return {n for n, node in self.nodes.items() if isinstance(node.operator, SinkOperator)}

    def _needed_by(self, sinks: set[int]) -> set[int]:
        if not sinks:
            # Nothing to prune for: let the check of the whole say what is missing.
            return set(self.nodes) - self.executed
        needed, left = set(sinks), list(sinks)
        while left:
            for upstream in self.inputs[left.pop()]:
                if upstream.node not in needed:
                    needed.add(upstream.node)
                    left.append(upstream.node)
        return needed

    def _partitioning(self, upstream: Upstream, target: int) -> Partitioning:
        if upstream.partitioning is not None:
            return upstream.partitioning
        same = self.nodes[upstream.node].parallelism == self.nodes[target].parallelism
        return ForwardPartitioning() if same else RebalancePartitioning()
