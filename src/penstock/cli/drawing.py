"""A job graph drawn in the terminal: a box for each chain, a line for each exchange."""

from __future__ import annotations

from collections.abc import Mapping

from rich.console import Console, Group
from rich.panel import Panel
from rich.text import Text

from penstock.cli.chains import exchange, state_of
from penstock.cli.states import DeclaredStates
from penstock.graph.execution_graph import ExecutionGraph
from penstock.graph.job_graph import JobGraph, JobVertex
from penstock.graph.stream_graph import DEFAULT_SHARING_GROUP


def draw(
    graph: ExecutionGraph,
    declared: Mapping[int, DeclaredStates],
    console: Console | None = None,
) -> None:
    """Draw `graph` on the terminal."""
    console = console or Console()
    console.print(Text(summary(graph), style="bold"))
    for vertex in graph.job.vertices:
        console.print(_chain(vertex, declared))
        for line in _exchanges(graph.job, vertex, ascii_only=console.options.ascii_only):
            console.print(line)


def summary(graph: ExecutionGraph) -> str:
    job = graph.job
    counts = (
        _count(len(job.vertices), "chain"),
        _count(len(job.edges), "exchange"),
        _count(len(graph.subtasks()), "subtask"),
        _count(graph.slots, "slot"),
    )
    return f"{job.name}: {', '.join(counts)}"


def _chain(vertex: JobVertex, declared: Mapping[int, DeclaredStates]) -> Panel:
    title = f"[{vertex.id}] parallelism {vertex.parallelism}"
    if vertex.slot_sharing_group != DEFAULT_SHARING_GROUP:
        title += f", slot sharing group {vertex.slot_sharing_group}"
    lines = []
    for node in vertex.nodes:
        line = Text(node.name)
        if (state := state_of(node, declared)) is not None:
            line.append(f"  ({state})", style="yellow")
        lines.append(line)
    return Panel(Group(*lines), title=Text(title), title_align="left", expand=False)


def _exchanges(graph: JobGraph, vertex: JobVertex, *, ascii_only: bool) -> list[Text]:
    branch, arrow = ("+-", "->") if ascii_only else ("└─", "→")
    return [
        Text(f"    {branch} {exchange(graph, edge)} {arrow} [{edge.target}]", style="cyan")
        for edge in graph.outputs(vertex.id)
    ]


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"
