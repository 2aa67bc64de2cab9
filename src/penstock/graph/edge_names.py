"""Names of edges that stay the same from one start of a program to the next.

Channel state is found again by them, so a name says all that must not change for it to fit: who
sends, by which output, how records are spread, whether they carry time, who receives and where.
"""

from __future__ import annotations

from collections import Counter

from penstock.graph.job_graph import JobEdge, JobGraph


def edge_names(job: JobGraph) -> dict[int, str]:
    """The name of every edge, by its id."""
    seen: Counter[str] = Counter()
    names = {}
    for edge in job.edges:
        name = _name(job, edge)
        seen[name] += 1
        # A stream may be united with itself.
        names[edge.id] = name if seen[name] == 1 else f"{name} #{seen[name]}"
    return names


def _name(job: JobGraph, edge: JobEdge) -> str:
    sender = next(node for node in job.vertex(edge.source).nodes if node.id == edge.node)
    tag = "" if edge.tag is None else f"/{edge.tag}"
    time = " with time" if edge.timed else ""
    receiver = job.vertex(edge.target)
    return f"{sender.uid}{tag} --{edge.partitioning.name}{time}--> {receiver.uid}[{edge.input}]"
