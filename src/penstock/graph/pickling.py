"""The program as bytes for the slots, and if it cannot be: which variable is to blame.

Functions of the main module travel by value, with everything they refer to. What they refer to by
accident, a lock, a connection, an open file, cannot travel; finding out where it hangs is what
takes the time, so the error says it.
"""

from __future__ import annotations

import inspect
import io
import sys
from collections.abc import Iterator
from types import ModuleType
from typing import Any

import cloudpickle

from penstock.errors import ProgramError
from penstock.graph.execution_graph import ExecutionGraph
from penstock.graph.job_graph import JobGraph
from penstock.graph.main_module import ProgramPickler

_DEEPEST = 6


def pickle_graph(graph: ExecutionGraph, main: ModuleType | None = None) -> bytes:
    """The graph, pickled; ProgramError that names operator and variable if it cannot be.

    Behind it are the classes of the script, whose module is `main` (see `main_module`).
    """
    written = io.BytesIO()
    pickler = ProgramPickler(written, main or sys.modules["__main__"])
    try:
        pickler.dump(graph)
        pickler.dump_main()
    except Exception as error:
        raise ProgramError(_explanation(graph, error)) from error
    return written.getvalue()


def _explanation(graph: ExecutionGraph, error: Exception) -> str:
    for name, part in _shipped(graph):
        if not _fails(part):
            continue
        trail = _trail(part)
        what = ".".join(name for name, _ in trail if name != "function") or "its function"
        kind = type(trail[-1][1] if trail else part).__name__
        return (
            f"{name} cannot be sent to the slots: {what} is a {kind}, which "
            "cannot be pickled; make it where it is used, for example in open()"
        )
    return f"the program cannot be sent to the slots: {error}"


def _shipped(graph: ExecutionGraph) -> Iterator[tuple[str, Any]]:
    """What of the program comes from its author, and what to call it."""
    job = graph.job
    for edge in job.edges:
        # Before the operators, which hold the selectors of their inputs too.
        names = f"{_name(job, edge.source, edge.node)!r} and {job.vertex(edge.target).head.name!r}"
        yield f"the partitioning between operators {names}", edge.partitioning
    for vertex in job.vertices:
        for node in vertex.nodes:
            yield f"operator {node.name!r}", node.operator


def _name(job: JobGraph, vertex: int, node: int) -> str:
    return next(each.name for each in job.vertex(vertex).nodes if each.id == node)


def _trail(value: Any) -> list[tuple[str, Any]]:
    """From `value` down to what cannot be pickled: names, and what they stand for."""
    trail: list[tuple[str, Any]] = []
    while len(trail) < _DEEPEST:
        below = next(((n, part) for n, part in _parts(value) if _fails(part)), None)
        if below is None:
            break
        trail.append(below)
        value = below[1]
    return trail


def _parts(value: Any) -> Iterator[tuple[str, Any]]:
    """What a value refers to, by name."""
    if inspect.ismethod(value):
        yield "self", value.__self__
    elif inspect.isfunction(value):
        used = inspect.getclosurevars(value)
        defaults = {
            name: parameter.default
            for name, parameter in inspect.signature(value).parameters.items()
            if parameter.default is not inspect.Parameter.empty
        }
        yield from {**used.nonlocals, **used.globals, **defaults}.items()
    elif isinstance(value, dict):
        for key, part in value.items():
            yield f"[{key!r}]", part
    elif isinstance(value, list | tuple | set | frozenset):
        for position, part in enumerate(value):
            yield f"[{position}]", part
    else:
        yield from getattr(value, "__dict__", {}).items()


def _fails(value: Any) -> bool:
    try:
        cloudpickle.dumps(value)
    except Exception:
        return True
    return False
