"""`penstock info job.py`: what would run."""

from __future__ import annotations

import contextlib
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from penstock.cli.exits import EXIT_FAILED
from penstock.cli.options import Asked, about_a_program

if TYPE_CHECKING:
    from penstock.cli.states import DeclaredStates


@click.command(context_settings={"allow_interspersed_args": False})
@about_a_program()
@click.option("--json", "as_json", is_flag=True, help="Print the plan as JSON, as Flink does.")
@click.option(
    "--svg", type=click.Path(dir_okay=False, path_type=Path), help="Write a picture to this file."
)
@click.option(
    "--no-open", is_flag=True, help="Do not open functions to see which states they declare."
)
def command(asked: Asked, as_json: bool, svg: Path | None, no_open: bool) -> int:
    """Show what the program in JOB would run: chains, exchanges, parallelism and state.

    The program is run up to its first execute(). Nothing is started.
    """
    from penstock.cli.preview import preview

    previewed = preview(asked)
    if previewed is None:
        return EXIT_FAILED
    graph = previewed.job.graph
    if as_json:
        from penstock.graph.plan import plan_json

        click.echo(plan_json(graph.job))
    if as_json and svg is None:
        return 0
    declared: dict[int, DeclaredStates] = {}
    if not no_open:
        from penstock.cli.states import declared_states

        # What functions print must not mix with what is asked for.
        with contextlib.redirect_stdout(sys.stderr):
            declared = declared_states(graph.job)
    if svg is not None:
        from penstock.cli.svg import draw_svg

        try:
            svg.write_text(draw_svg(graph.job, declared), encoding="utf-8")
        except OSError as error:
            raise click.UsageError(f"--svg {svg}: {error.strerror}") from error
    else:
        from penstock.cli.chains import without_uid
        from penstock.cli.drawing import draw

        draw(graph, declared)
        for node in without_uid(graph.job, declared):
            print(
                f"penstock: {node.name} has state and no uid: after a change of the program its "
                "state may not be found; give it one with .uid(...)",
                file=sys.stderr,
            )
    return 0
