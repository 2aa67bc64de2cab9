"""`penstock run --dry-run -s PATH job.py`: what of a savepoint the program would take over."""

from __future__ import annotations

import click

from penstock.cli.exits import EXIT_FAILED
from penstock.cli.options import Asked
from penstock.cli.preview import preview


def dry_run(asked: Asked) -> int:
    """Say operator by operator what would become of it; nothing is started."""
    from penstock.checkpoint.savepoints import open_snapshot
    from penstock.errors import ProgramError
    from penstock.jobmanager.matching import check_fits, match

    previewed = preview(asked)
    if previewed is None:
        return EXIT_FAILED
    planned = previewed.job
    if planned.restore_path is None:
        raise click.UsageError("--dry-run needs a savepoint or checkpoint to begin with: -s PATH")
    metadata = open_snapshot(planned.restore_path).metadata
    graph = planned.graph.job
    for each in match(graph, metadata):
        click.echo(f"{each.verdict.value:<12} {each.name} (uid {each.uid})")
        for held in each.saved.holdings() if each.saved is not None else ():
            click.echo(f"{'':<12}   {held}")
        if each.problem is not None:
            click.echo(f"{'':<12}   {each.problem}")
    try:
        check_fits(graph, metadata, planned.ignore_unclaimed)
    except ProgramError as error:
        click.echo(f"the job would not start: {error.summary()}")
        return EXIT_FAILED
    click.echo("the job would start")
    return 0
