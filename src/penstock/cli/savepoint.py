"""`penstock savepoint`: take one of a running job, or dispose of one."""

from __future__ import annotations

import click

from penstock.cli.places import absolute


@click.command()
@click.option("-d", "--dispose", "disposed", metavar="PATH", help="Delete this savepoint.")
@click.argument("job", required=False)
@click.argument("directory", required=False)
def command(disposed: str | None, job: str | None, directory: str | None) -> int:
    """Take a savepoint of the running JOB, in a new folder of DIRECTORY; prints its path.

    Without a DIRECTORY it goes to the job's state.savepoints.dir.
    """
    if disposed is not None:
        if job is not None:
            raise click.UsageError("-d disposes of a savepoint and takes no JOB")
        from penstock.checkpoint.savepoints import dispose

        dispose(disposed)
        return 0
    if job is None:
        raise click.UsageError("missing argument JOB; `penstock list` shows those that run")
    from penstock.control.client import ask, find_job

    found = find_job(job)
    where = None if directory is None else absolute(directory)
    click.echo(ask(found.driver, "savepoint", job=found.id, directory=where)["path"])
    return 0
