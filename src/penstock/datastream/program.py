"""The program under construction: nodes and edges, added by the API in the order it is called."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

from penstock.connectors.client_sinks import CollectSink
from penstock.connectors.collection import CollectionSource
from penstock.errors import ProgramError
from penstock.graph.operators import SinkOperator, SourceOperator
from penstock.graph.partitioning import Partitioning
from penstock.graph.stream_graph import (
    StreamEdge,
    StreamGraph,
    StreamNode,
    implied_partitioning,
)


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
class CachedRecords:
    """What is kept of a cached stream; None: nothing yet, or nothing any more."""

    values: list[bytes] | None = None


_CACHE_SINKS = 1 << 30
"""The sink that fills the cache of node n has this number plus n: after all that a user adds."""


@dataclass
class Program:
    """What the calls so far amount to."""

    nodes: dict[int, StreamNode] = field(default_factory=dict)
    inputs: dict[int, tuple[Upstream, ...]] = field(default_factory=dict)
    executed: frozenset[int] = frozenset()
    """Sinks that an earlier execute() ran. Streams before them may be used again."""

    caches: dict[int, CachedRecords] = field(default_factory=dict)
    """The nodes whose records are kept for later jobs."""

    group_memory: dict[str, int] = field(default_factory=dict)
    """Managed memory of slot sharing groups that have their own, in bytes, by their names."""

    def add(self, node: StreamNode, inputs: tuple[Upstream, ...]) -> int:
        self.nodes[node.id] = node
        self.inputs[node.id] = inputs
        return node.id

    def next_id(self) -> int:
        return len(self.nodes) + 1

    def change(self, node_id: int, **changes: Any) -> None:
        if "parallelism" in changes:
            changes["own_parallelism"] = True
        self.nodes[node_id] = replace(self.nodes[node_id], **changes)

    def stream_graph(self) -> StreamGraph:
        """The program that ends in the sinks added since the last execute()."""
        if self.executed and not self._sinks() - self.executed:
            raise ProgramError(
                "all of the program was executed before, and no sink has been added since: "
                "nothing to execute"
            )
        current = self._with_caches()
        wanted = current._needed_by(self._sinks() - self.executed)
        for node in [node for node in current.caches if node in wanted]:
            wanted.add(current._add_cache_sink(node))
        edges = [
            StreamEdge(
                upstream.node,
                target,
                current._partitioning(upstream, target),
                upstream.input,
                upstream.tag,
                upstream.partitioning is None,
            )
            for target, upstreams in current.inputs.items()
            for upstream in upstreams
            if target in wanted
        ]
        return StreamGraph.build([current.nodes[node] for node in sorted(wanted)], edges)

    def cache_sinks(self) -> dict[int, CachedRecords]:
        """The caches by the number of the sink that fills them, in a job that has one."""
        return {_CACHE_SINKS + node: records for node, records in self.caches.items()}

    def _with_caches(self) -> Program:
        """The program in which every filled cache is a source."""
        nodes, inputs, empty = dict(self.nodes), dict(self.inputs), {}
        for node, records in self.caches.items():
            if records.values is None:
                empty[node] = records
                continue
            source = SourceOperator(CollectionSource.of_pickled(records.values))
            nodes[node] = replace(nodes[node], operator=source, parallelism=1, own_parallelism=True)
            inputs[node] = ()
        return replace(self, nodes=nodes, inputs=inputs, caches=empty)

    def _add_cache_sink(self, node: int) -> int:
        cached = self.nodes[node]
        sink = replace(
            cached,
            id=_CACHE_SINKS + node,
            name=f"Keep: {cached.name}",
            operator=SinkOperator(CollectSink()),
            uid=f"{cached.uid}-kept" if cached.uid else "",
            output_type=None,
        )
        return self.add(sink, (Upstream(node, None),))

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
        return implied_partitioning(self.nodes[upstream.node], self.nodes[target])
