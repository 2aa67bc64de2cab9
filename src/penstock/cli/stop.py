"""`penstock stop`: end a running job with a savepoint."""

from __future__ import annotations

import click

from penstock.cli.places import absolute


@click.command()
@click.option(
    "-p",
    "--savepointPath",
    "directory",
    metavar="DIR",
    help="Where the savepoint goes; the job's state.savepoints.dir without it.",
)
@click.option(
    "-d", "--drain", is_flag=True, help="Let every timer fire and every window close before."
)
@click.argument("job")
def command(directory: str | None, drain: bool, job: str) -> int:
    """Stop the running JOB with a savepoint, its output committed; prints the savepoint's path."""
    from penstock.control.client import ask, find_job

    found = find_job(job)
    where = None if directory is None else absolute(directory)
    click.echo(ask(found.driver, "stop", job=found.id, directory=where, drain=drain)["path"])
    return 0
