"""`penstock info job.py`: what would run."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from penstock.cli.exits import EXIT_FAILED
from penstock.cli.options import (
    file_settings,
    job_argument,
    overriding_settings,
    pyflink_option,
    setting_options,
)


@click.command(context_settings={"allow_interspersed_args": False})
@setting_options
@click.option("--json", "as_json", is_flag=True, help="Print the plan as JSON, as Flink does.")
@click.option(
    "--svg", type=click.Path(dir_okay=False, path_type=Path), help="Write a picture to this file."
)
@pyflink_option
@job_argument()
def command(
    definitions: tuple[str, ...],
    parallelism: int | None,
    master: str | None,
    config_file: Path | None,
    as_json: bool,
    svg: Path | None,
    pyflink: bool,
    job: Path,
    arguments: tuple[str, ...],
) -> int:
    """Show what the program in JOB would run: chains, exchanges, parallelism and state.

    The program is run up to its first execute(). Nothing is started.
    """
    file = file_settings(config_file)
    overrides = overriding_settings(definitions, parallelism, master)
    from penstock.cli.preview import preview

    previewed = preview(job, arguments, file, overrides, pyflink)
    if previewed is None:
        return EXIT_FAILED
    graph = previewed.job.graph
    if svg is not None:
        from penstock.cli.svg import draw_svg

        try:
            svg.write_text(draw_svg(graph.job), encoding="utf-8")
        except OSError as error:
            raise click.UsageError(f"--svg {svg}: {error.strerror}") from error
    if as_json:
        from penstock.graph.plan import plan_json

        click.echo(plan_json(graph.job))
    elif svg is None:
        from penstock.cli.chains import without_uid
        from penstock.cli.drawing import draw

        draw(graph)
        for node in without_uid(graph.job):
            print(
                f"penstock: {node.name} has state and no uid: after a change of the program its "
                "state may not be found; give it one with .uid(...)",
                file=sys.stderr,
            )
    return 0
