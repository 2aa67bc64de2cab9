"""The program under construction: nodes and edges, added by the API in the order it is called."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

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


@dataclass
class Program:
    """What the calls so far amount to."""

    nodes: dict[int, StreamNode] = field(default_factory=dict)
    inputs: dict[int, tuple[Upstream, ...]] = field(default_factory=dict)

    def add(self, node: StreamNode, inputs: tuple[Upstream, ...]) -> int:
        self.nodes[node.id] = node
        self.inputs[node.id] = inputs
        return node.id

    def next_id(self) -> int:
        return len(self.nodes) + 1

    def change(self, node_id: int, **changes: Any) -> None:
        self.nodes[node_id] = replace(self.nodes[node_id], **changes)

    def stream_graph(self) -> StreamGraph:
        edges = [
            StreamEdge(upstream.node, target, self._partitioning(upstream, target))
            for target, upstreams in self.inputs.items()
            for upstream in upstreams
        ]
        return StreamGraph.build(list(self.nodes.values()), edges)

    def _partitioning(self, upstream: Upstream, target: int) -> Partitioning:
        if upstream.partitioning is not None:
            return upstream.partitioning
        same = self.nodes[upstream.node].parallelism == self.nodes[target].parallelism
        return ForwardPartitioning() if same else RebalancePartitioning()
