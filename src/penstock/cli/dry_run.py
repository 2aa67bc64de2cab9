"""`penstock run --dry-run -s PATH job.py`: what of a savepoint the program would take over."""

from __future__ import annotations

import contextlib
import sys
from typing import TYPE_CHECKING

import click

from penstock.cli.exits import EXIT_FAILED
from penstock.cli.options import Asked
from penstock.cli.preview import preview

if TYPE_CHECKING:
    from penstock.cli.state_matching import StateMatch
    from penstock.graph.job_graph import JobGraph
    from penstock.inspection.catalog import Catalog
    from penstock.jobmanager.matching import Match


def dry_run(asked: Asked) -> int:
    """Say operator by operator and state by state what would become of it; nothing is started."""
    from penstock.errors import ProgramError
    from penstock.inspection.catalog import Catalog
    from penstock.jobmanager.matching import check_fits, match

    previewed = preview(asked)
    if previewed is None:
        return EXIT_FAILED
    planned = previewed.job
    if planned.restore_path is None:
        raise click.UsageError("--dry-run needs a savepoint or checkpoint to begin with: -s PATH")
    catalog = Catalog.open(planned.restore_path)
    graph, metadata = planned.graph.job, catalog.snapshot.metadata
    states = _states(graph, catalog)
    problems = []
    for each in match(graph, metadata):
        click.echo(f"{each.verdict.value:<12} {each.name} (uid {each.uid})")
        for line in _held(each, states.get(each.uid)):
            click.echo(f"{'':<12}   {line}")
        problems += [
            f"{each.name} (uid {each.uid}): {state.problem}"
            for state in states.get(each.uid, ())
            if state.problem is not None
        ]
    problems += _wrong_backend(graph, catalog, planned.settings.state.backend)
    try:
        check_fits(graph, metadata, planned.ignore_unclaimed)
    except ProgramError as error:
        problems.insert(0, error.summary())
    if problems:
        click.echo(f"the job would not start: {problems[0]}")
        return EXIT_FAILED
    click.echo("the job would start")
    return 0


def _wrong_backend(graph: JobGraph, catalog: Catalog, backend: str) -> list[str]:
    """What is for another state backend than the job's."""
    from penstock.errors import StateError
    from penstock.state.segments import Origin

    problems = []
    for node in (node for vertex in graph.vertices for node in vertex.nodes):
        saved = catalog.operators.get(node.uid)
        try:
            Origin(backend=saved.backend if saved else "").check_backend(backend)
        except StateError as error:
            problems.append(f"{node.name} (uid {node.uid}): {error}")
    return problems


def _states(graph: JobGraph, catalog: Catalog) -> dict[str, list[StateMatch]]:
    """The states of every operator that the program and the savepoint both have, by uid."""
    from penstock.cli.state_matching import match_states
    from penstock.cli.states import declared_states

    # What functions print must not mix with what is asked for.
    with contextlib.redirect_stdout(sys.stderr):
        declared = declared_states(graph)
    nodes = [node for vertex in graph.vertices for node in vertex.nodes]
    return {
        node.uid: match_states(catalog.operators[node.uid], declared.get(node.id))
        for node in nodes
        if node.uid in catalog.operators
    }


def _held(each: Match, states: list[StateMatch] | None) -> list[str]:
    if each.saved is None:
        return []
    if states is None:
        return each.saved.holdings()
    lines = []
    for state in states:
        lines.append(f"{state.verdict:<12} {state.text}")
        if state.problem is not None:
            lines.append(f"{'':<12} {state.problem}")
    lines += each.saved.other_holdings()
    return lines if each.problem is None else [*lines, each.problem]
