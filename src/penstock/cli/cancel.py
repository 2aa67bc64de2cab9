"""`penstock cancel`: end a running job at once."""

from __future__ import annotations

import click


@click.command()
@click.argument("job")
def command(job: str) -> int:
    """Cancel the running JOB; returns when nothing of it is left."""
    from penstock.control.client import ask, find_job

    found = find_job(job)
    ask(found.driver, "cancel", job=found.id)
    return 0
