"""`penstock run job.py`."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import click

from penstock.cli.exits import EXIT_FAILED, EXIT_INTERRUPTED
from penstock.cli.options import Asked, about_a_program
from penstock.common.config_layers import Setting
from penstock.common.config_options import (
    IGNORE_UNCLAIMED,
    RECOVERY_PATH,
    RESTART_STRATEGY,
    parse_job_id,
)


def _job_id(context: click.Context, parameter: click.Parameter, value: str | None) -> str | None:
    try:
        return None if value is None else parse_job_id(value)
    except ValueError as error:
        raise click.UsageError(f"--job-id {value}: {error}") from error


# What follows JOB belongs to the program, also where it looks like an option of ours.
@click.command(context_settings={"allow_interspersed_args": False})
@about_a_program()
@click.option("-d", "--detached", is_flag=True, help="Run in the background, with a log file.")
@click.option("--job-id", callback=_job_id, metavar="ID", help="The id of the program's job.")
@click.option(
    "-s",
    "--from-savepoint",
    "--fromSavepoint",
    "restore_path",
    metavar="PATH",
    help="Begin with a savepoint or a retained checkpoint: its directory or its _metadata.",
)
@click.option(
    "-n",
    "--allow-non-restored-state",
    "--allowNonRestoredState",
    "ignore_unclaimed",
    is_flag=True,
    help="Let state go that no operator of the program claims.",
)
@click.option(
    "--dry-run",
    is_flag=True,
    help="Start nothing: say what of the savepoint each operator would take over.",
)
@click.option(
    "--debug",
    is_flag=True,
    help="Run in this process without Spark, so that breakpoint() stops in a function.",
)
def command(
    asked: Asked,
    detached: bool,
    job_id: str | None,
    restore_path: str | None,
    ignore_unclaimed: bool,
    dry_run: bool,
    debug: bool,
) -> int:
    """Run the program in the file JOB, with the arguments after it."""
    if debug and detached:
        raise click.UsageError("--debug needs this terminal; leave out --detached")
    settings = [f"{RECOVERY_PATH.key}={restore_path}"] if restore_path is not None else []
    settings += [f"{IGNORE_UNCLAIMED.key}=true"] if ignore_unclaimed else []
    asked = replace(asked, definitions=(*asked.definitions, *settings))
    file, overrides, job = asked.file(), asked.overrides(), asked.program
    if dry_run:
        from penstock.cli.dry_run import dry_run as say

        return say(asked)
    if detached:
        from penstock.cli.detach import start_detached

        options = [*asked.again(), *(["--job-id", job_id] if job_id is not None else [])]
        pid, log = start_detached(job, ["run", *options, str(job), *asked.arguments])
        click.echo(f"process {pid}, log {log}")
        return 0
    from penstock.cli.pyflink_hook import pyflink_importable
    from penstock.datastream.invocation import Invocation, invoked

    with contextlib.ExitStack() as stack:
        if debug:
            from penstock.testing.local_environment import programs_run_here

            # A function that raises is what one looks for.
            overrides = {RESTART_STRATEGY.key: Setting("none", "--debug"), **overrides}
            stack.enter_context(programs_run_here())
        stack.enter_context(invoked(Invocation(file, overrides, job_id)))
        stack.enter_context(pyflink_importable(asked.pyflink))
        return run_and_report(job, asked.arguments)


def run_and_report(job: Path, arguments: Sequence[str]) -> int:
    """Run a user's file; its failure goes to stderr. The exit code."""
    from penstock.cli.failures import describe
    from penstock.cli.program import run_file

    try:
        run_file(job, arguments)
    except KeyboardInterrupt:
        print("penstock: interrupted", file=sys.stderr)
        return EXIT_INTERRUPTED
    except Exception as error:
        sys.stdout.flush()
        sys.stderr.write(describe(error))
        return EXIT_FAILED
    return 0
