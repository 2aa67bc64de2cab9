"""`penstock list`: the jobs of this user on this machine, and drivers elsewhere."""

from __future__ import annotations

import click


@click.command()
@click.option("-a", "--all", "ended_too", is_flag=True, help="Also jobs that have ended.")
def command(ended_too: bool) -> int:
    """List the jobs that run, with their ids, drivers' processes, states and names."""
    from penstock.control.client import elsewhere, find_jobs

    jobs = [job for job in find_jobs() if ended_too or not job.ended]
    for job in jobs:
        click.echo(f"{job.id}  {job.driver.pid:>7}  {job.status:<10}  {job.name}")
    if not jobs:
        click.echo("no job runs")
    for driver in elsewhere():
        click.echo(f"on {driver.host}: a driver, process {driver.pid}; its jobs are listed there")
    return 0
