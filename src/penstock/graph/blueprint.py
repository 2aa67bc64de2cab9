"""The Blueprint: a program that is laid out on slots, at one parallelism or at another.

The parallelism of the job holds for operators that set none of their own. When it changes, chains
may break up or form: where nobody chose how records go from one operator to the next, they go
forward between operators of the same parallelism and in turns otherwise. Uids stay what they are,
so state finds its way.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from penstock.errors import ConfigurationError, InvalidParallelismError, ProgramError
from penstock.graph.execution_graph import ExecutionGraph, build_execution_graph
from penstock.graph.job_graph import CHAINED, Chains, build_job_graph
from penstock.graph.stream_graph import (
    StreamGraph,
    StreamNode,
    check_edge,
    check_parallelism,
    implied_partitioning,
)


@dataclass(frozen=True)
class Blueprint:
    """A checked program with its name, and how its operators are chained."""

    program: StreamGraph
    name: str
    chains: Chains = CHAINED

    def laid_out(self) -> ExecutionGraph:
        """As its author wrote it."""
        return build_execution_graph(build_job_graph(self.program, self.name, self.chains))

    def at(self, parallelism: int) -> Blueprint:
        """With another parallelism of the job.

        InvalidParallelismError if an operator cannot have it, ProgramError if none would.
        """
        if parallelism < 1:
            raise InvalidParallelismError(f"a parallelism of {parallelism} runs nothing")
        nodes = tuple(
            node if node.own_parallelism else replace(node, parallelism=parallelism)
            for node in self.program.nodes
        )
        if all(node.own_parallelism for node in nodes):
            raise ProgramError(
                "every operator has a parallelism of its own, which set_parallelism() gave it or "
                "its source allows: there is none to change"
            )
        return self._with(nodes)

    def overridden(self, parallelisms: Mapping[str, int]) -> Blueprint:
        """With other parallelisms of vertices, by the uid of the first operator of each.

        ConfigurationError if there is no such vertex, InvalidParallelismError if an operator
        cannot have the parallelism.
        """
        if not parallelisms:
            return self
        vertices = {vertex.uid: vertex for vertex in self.laid_out().job.vertices}
        unknown = sorted(set(parallelisms) - set(vertices))
        if unknown:
            raise ConfigurationError(
                f"pipeline.jobvertex-parallelism-overrides: no vertex begins with an operator of "
                f"uid {unknown[0]!r}; there are {', '.join(sorted(vertices))}"
            )
        chosen = {
            node.id: parallelisms[uid]
            for uid, vertex in vertices.items()
            if uid in parallelisms
            for node in vertex.nodes
        }
        return self._with(
            tuple(
                replace(node, parallelism=chosen[node.id], own_parallelism=True)
                if node.id in chosen
                else node
                for node in self.program.nodes
            )
        )

    def _with(self, nodes: tuple[StreamNode, ...]) -> Blueprint:
        for node in nodes:
            check_parallelism(node)
        by_id = {node.id: node for node in nodes}
        edges = tuple(
            replace(edge, partitioning=implied_partitioning(by_id[edge.source], by_id[edge.target]))
            if edge.implied
            else check_edge(edge, nodes)
            for edge in self.program.edges
        )
        return replace(self, program=StreamGraph(nodes, edges))
