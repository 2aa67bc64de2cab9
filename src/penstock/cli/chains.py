"""What a picture of a job graph says, whatever it is drawn with."""

from __future__ import annotations

from collections.abc import Mapping

from penstock.cli.states import DeclaredStates
from penstock.connectors.sink import Sink
from penstock.graph.job_graph import JobEdge, JobGraph
from penstock.graph.operators import CONTEXT_OPERATORS, ReduceOperator, SinkOperator
from penstock.graph.stream_graph import StreamNode, is_source


def state_of(node: StreamNode, declared: Mapping[int, DeclaredStates]) -> str | None:
    """What an operator has in a checkpoint, in a few words; None: nothing."""
    known = declared.get(node.id)
    if known is not None and known.mistake is not None:
        return f"will fail: {known.mistake}"
    if known is not None and known.states:
        return "; ".join(known.states)
    if known is not None and not isinstance(node.operator, ReduceOperator):
        timers = node.operator.keyed and isinstance(node.operator, CONTEXT_OPERATORS)
        return "timers at most" if timers else None
    if node.operator.keyed:
        return "keyed state"
    if is_source(node):
        return "read position"
    if isinstance(node.operator, SinkOperator) and _commits(node.operator.sink):
        return "pending output"
    return None


def _commits(sink: Sink) -> bool:
    return type(sink).create_committer is not Sink.create_committer


def exchange(graph: JobGraph, edge: JobEdge) -> str:
    """How records leave, with the operator they leave from where the chain has several."""
    vertex = graph.vertex(edge.source)
    name = edge.partitioning.name
    if edge.node == vertex.nodes[-1].id:
        return name
    writer = next(node.name for node in vertex.nodes if node.id == edge.node)
    return f"{name} from {writer}"


def without_uid(graph: JobGraph, declared: Mapping[int, DeclaredStates]) -> list[StreamNode]:
    """The operators with state whose author gave them no uid."""
    nodes = (node for vertex in graph.vertices for node in vertex.nodes)
    wrong = {node for node, known in declared.items() if known.mistake is not None}
    return [
        node
        for node in nodes
        if node.generated_uid and node.id not in wrong and state_of(node, declared) is not None
    ]
