"""`penstock rescale`: change the parallelism of a running job."""

from __future__ import annotations

import click


@click.command()
@click.option(
    "-p",
    "--parallelism",
    metavar="N",
    type=click.IntRange(min=1),
    required=True,
    help="Of all operators that set none of their own.",
)
@click.argument("job")
def command(parallelism: int, job: str) -> int:
    """Go on with the running JOB at another parallelism; returns when it runs there.

    If that cannot be it says why, and the job goes on as before.
    """
    from penstock.control.client import ask, find_job

    found = find_job(job)
    ask(found.driver, "rescale", job=found.id, parallelism=parallelism)
    return 0
