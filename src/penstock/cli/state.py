"""`penstock state`: what is inside a savepoint or a checkpoint."""

from __future__ import annotations

from datetime import datetime, timezone

import click


@click.group()
def command() -> None:
    """Look inside a savepoint or a retained checkpoint."""


@command.command("ls")
@click.argument("path")
def ls(path: str) -> int:
    """List the operators in PATH with their states, sizes and parallelism."""
    from penstock.checkpoint.savepoints import open_snapshot
    from penstock.jobmanager.matching import saved_operators

    metadata = open_snapshot(path).metadata
    taken = datetime.fromtimestamp(metadata.timestamp / 1000, timezone.utc)
    click.echo(
        f"checkpoint {metadata.checkpoint} of job {metadata.job_id}, {taken:%Y-%m-%d %X} UTC"
    )
    for operator in saved_operators(metadata).values():
        vertex = operator.vertex
        finished = ", finished" if vertex.finished() else ""
        click.echo(
            f"\n{operator.name} (uid {operator.uid}): {operator.size:,} bytes, "
            f"parallelism {vertex.parallelism} of {vertex.max_parallelism}{finished}"
        )
        for held in operator.holdings():
            click.echo(f"  {held}")
    return 0
