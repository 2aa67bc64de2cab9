"""The plan: a program as JSON, in the shape that Flink prints and its visualizer reads."""

from __future__ import annotations

import json
from typing import Any

from penstock.graph.job_graph import JobGraph
from penstock.graph.operators import SinkOperator
from penstock.graph.stream_graph import StreamNode, is_source


def plan_json(graph: JobGraph) -> str:
    """One node per operator, each with what feeds it."""
    inputs = _inputs(graph)
    nodes = sorted((node for vertex in graph.vertices for node in vertex.nodes), key=_id)
    return json.dumps({"nodes": [_node(node, inputs[node.id]) for node in nodes]}, indent=2)


def _inputs(graph: JobGraph) -> dict[int, list[dict[str, Any]]]:
    inputs: dict[int, list[dict[str, Any]]] = {
        node.id: [] for vertex in graph.vertices for node in vertex.nodes
    }
    for vertex in graph.vertices:
        for call in vertex.chained:
            inputs[call.target].append(_predecessor(call.source, "FORWARD"))
    for edge in graph.edges:
        head = graph.vertex(edge.target).head
        inputs[head.id].append(_predecessor(edge.node, edge.partitioning.name))
    return inputs


def _predecessor(node: int, strategy: str) -> dict[str, Any]:
    # Flink writes "second" for every input, and its visualizer expects a word here.
    return {"id": node, "ship_strategy": strategy, "side": "second"}


def _node(node: StreamNode, predecessors: list[dict[str, Any]]) -> dict[str, Any]:
    described: dict[str, Any] = {
        "id": node.id,
        "type": node.name,
        "pact": _pact(node),
        "contents": node.name,
        "parallelism": node.parallelism,
    }
    if predecessors:
        described["predecessors"] = predecessors
    return described


def _pact(node: StreamNode) -> str:
    if is_source(node):
        return "Data Source"
    return "Data Sink" if isinstance(node.operator, SinkOperator) else "Operator"


def _id(node: StreamNode) -> int:
    return node.id
