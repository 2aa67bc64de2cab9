"""The JobGraph: operators fused into chains, chains connected by exchanges.

Operators that run in the same subtask with nothing but a function call between them form a
*vertex*. Two operators are fused when the edge between them is a forward, the lower one has no
other input, both have the same parallelism and slot sharing group, and neither asked not to be.
"""

from __future__ import annotations

from dataclasses import dataclass

from penstock.graph.partitioning import ForwardPartitioning, Partitioning
from penstock.graph.stream_graph import Chaining, StreamEdge, StreamGraph, StreamNode
from penstock.graph.timing import check_timestamps, may_begin_below, strategy_of, timed_nodes


@dataclass(frozen=True)
class ChainEdge:
    """A function call between two operators of one vertex."""

    source: int
    target: int
    tag: str | None = None


@dataclass(frozen=True)
class JobVertex:
    """A chain: its first node is the head, the others hang below it in a tree."""

    id: int
    nodes: tuple[StreamNode, ...]
    chained: tuple[ChainEdge, ...]
    timed: bool = False
    """Whether its input records come with their timestamps."""
    numbered: bool = False
    """Whether its number is part of its name."""

    @property
    def head(self) -> StreamNode:
        return self.nodes[0]

    @property
    def uid(self) -> str:
        return self.head.uid

    @property
    def name(self) -> str:
        number = f"[vertex-{self.id}]" if self.numbered else ""
        return number + " -> ".join(node.name for node in self.nodes)

    @property
    def parallelism(self) -> int:
        return self.head.parallelism

    @property
    def max_parallelism(self) -> int:
        return self.head.max_parallelism

    @property
    def slot_sharing_group(self) -> str:
        return self.head.slot_sharing_group


@dataclass(frozen=True)
class JobEdge:
    """An exchange: buffers go from the operator `node` of `source` to the head of `target`."""

    id: int
    source: int
    node: int
    target: int
    partitioning: Partitioning
    input: int = 0
    tag: str | None = None
    timed: bool = False
    """Whether records travel with their timestamps."""


@dataclass(frozen=True)
class JobGraph:
    """The chained program, vertices in an order in which every input comes first."""

    name: str
    vertices: tuple[JobVertex, ...]
    edges: tuple[JobEdge, ...]

    def vertex(self, vertex_id: int) -> JobVertex:
        return next(vertex for vertex in self.vertices if vertex.id == vertex_id)

    def inputs(self, vertex_id: int) -> list[JobEdge]:
        return [edge for edge in self.edges if edge.target == vertex_id]

    def outputs(self, vertex_id: int) -> list[JobEdge]:
        return [edge for edge in self.edges if edge.source == vertex_id]

    def describe(self) -> str:
        """The graph as text, stable from run to run: what a snapshot test compares."""
        lines = []
        for vertex in self.vertices:
            group = vertex.slot_sharing_group
            lines.append(f"[{vertex.id}] {vertex.name} x{vertex.parallelism} ({group})")
            for edge in self.outputs(vertex.id):
                writer = next(node.name for node in vertex.nodes if node.id == edge.node)
                writer += "" if edge.tag is None else f"/{edge.tag}"
                time = " with time" if edge.timed else ""
                lines.append(f"    {writer} --{edge.partitioning.name}{time}--> [{edge.target}]")
        return "\n".join(lines)


@dataclass(frozen=True)
class Chains:
    """Which operators are fused, and what vertices are called."""

    enabled: bool = True
    unlike: bool = True
    """Whether operators are fused whose max parallelism differs."""
    numbered: bool = False
    """Whether the number of a vertex is part of its name."""


CHAINED = Chains()


def build_job_graph(graph: StreamGraph, name: str, chains: Chains = CHAINED) -> JobGraph:
    """Fuse what can be fused."""
    check_timestamps(graph)
    fusing = _fusing(graph, chains.unlike) if chains.enabled else frozenset()
    timed = timed_nodes(graph)
    head_of: dict[int, int] = {}
    members: dict[int, list[StreamNode]] = {}
    chained: dict[int, list[ChainEdge]] = {}
    for node in graph.nodes:
        fused = graph.inputs(node.id)[0] if node.id in fusing else None
        head = node.id if fused is None else head_of[fused.source]
        head_of[node.id] = head
        members.setdefault(head, []).append(node)
        if fused is not None:
            chained.setdefault(head, []).append(ChainEdge(fused.source, node.id, fused.tag))
    index = {head: position for position, head in enumerate(members)}
    vertices = tuple(
        JobVertex(
            index[head],
            tuple(nodes),
            tuple(chained.get(head, ())),
            head in timed,
            chains.numbered,
        )
        for head, nodes in members.items()
    )
    exchanges = (edge for edge in graph.edges if edge.target not in fusing)
    edges = tuple(
        JobEdge(
            number,
            index[head_of[edge.source]],
            edge.source,
            index[head_of[edge.target]],
            edge.partitioning,
            edge.input,
            edge.tag,
            edge.target in timed,
        )
        for number, edge in enumerate(exchanges)
    )
    return JobGraph(name, vertices, edges)


def _fusing(graph: StreamGraph, unlike: bool) -> frozenset[int]:
    """The nodes that are in one chain with the node that feeds them."""
    fusing: set[int] = set()
    for node in graph.nodes:
        inputs = graph.inputs(node.id)
        if len(inputs) != 1 or not _fuses(graph, inputs[0], unlike):
            continue
        begins = strategy_of(node.operator) is not None
        if not begins or may_begin_below(graph, inputs[0], frozenset(fusing)):
            fusing.add(node.id)
    return frozenset(fusing)


def _fuses(graph: StreamGraph, edge: StreamEdge, unlike: bool) -> bool:
    upper, lower = graph.node(edge.source), graph.node(edge.target)
    return (
        isinstance(edge.partitioning, ForwardPartitioning)
        and upper.parallelism == lower.parallelism
        and (unlike or upper.max_parallelism == lower.max_parallelism)
        and upper.slot_sharing_group == lower.slot_sharing_group
        and upper.chaining is not Chaining.NEVER
        and lower.chaining is Chaining.ALWAYS
    )
