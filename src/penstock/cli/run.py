"""`penstock run job.py`."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

import click

from penstock.cli.exits import EXIT_FAILED, EXIT_INTERRUPTED
from penstock.cli.options import (
    file_settings,
    job_argument,
    overriding_settings,
    pyflink_option,
    setting_options,
)
from penstock.common.config_options import IGNORE_UNCLAIMED, RECOVERY_PATH, parse_job_id


def _job_id(context: click.Context, parameter: click.Parameter, value: str | None) -> str | None:
    try:
        return None if value is None else parse_job_id(value)
    except ValueError as error:
        raise click.UsageError(f"--job-id {value}: {error}") from error


# What follows JOB belongs to the program, also where it looks like an option of ours.
@click.command(context_settings={"allow_interspersed_args": False})
@setting_options
@click.option("-d", "--detached", is_flag=True, help="Run in the background, with a log file.")
@click.option("--job-id", callback=_job_id, metavar="ID", help="The id of the program's job.")
@click.option(
    "-s",
    "--from-savepoint",
    "restore_path",
    metavar="PATH",
    help="Begin with a savepoint or a retained checkpoint: its directory or its _metadata.",
)
@click.option(
    "-n",
    "--allow-non-restored-state",
    "ignore_unclaimed",
    is_flag=True,
    help="Let state go that no operator of the program claims.",
)
@click.option(
    "--dry-run",
    is_flag=True,
    help="Start nothing: say what of the savepoint each operator would take over.",
)
@pyflink_option
@job_argument()
def command(
    definitions: tuple[str, ...],
    parallelism: int | None,
    master: str | None,
    config_file: Path | None,
    detached: bool,
    job_id: str | None,
    restore_path: str | None,
    ignore_unclaimed: bool,
    dry_run: bool,
    pyflink: bool,
    job: Path,
    arguments: tuple[str, ...],
) -> int:
    """Run the program in the file JOB, with the arguments after it."""
    if restore_path is not None:
        definitions = (*definitions, f"{RECOVERY_PATH.key}={restore_path}")
    if ignore_unclaimed:
        definitions = (*definitions, f"{IGNORE_UNCLAIMED.key}=true")
    file = file_settings(config_file)
    overrides = overriding_settings(definitions, parallelism, master)
    if dry_run:
        from penstock.cli.dry_run import dry_run as say

        return say(job, arguments, file, overrides, pyflink)
    if detached:
        from penstock.cli.detach import start_detached

        options = _options(definitions, parallelism, master, config_file, job_id, pyflink)
        pid, log = start_detached(job, ["run", *options, str(job), *arguments])
        click.echo(f"process {pid}, log {log}")
        return 0
    from penstock.cli.pyflink_hook import pyflink_importable
    from penstock.datastream.invocation import Invocation, invoked

    with invoked(Invocation(file, overrides, job_id)), pyflink_importable(pyflink):
        return run_and_report(job, arguments)


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


def _options(
    definitions: tuple[str, ...],
    parallelism: int | None,
    master: str | None,
    config_file: Path | None,
    job_id: str | None,
    pyflink: bool,
) -> list[str]:
    """The same options again, without the one that detaches."""
    options = [part for definition in definitions for part in ("-D", definition)]
    for name, value in (
        ("--parallelism", parallelism),
        ("--master", master),
        ("--config", config_file),
        ("--job-id", job_id),
    ):
        if value is not None:
            options += [name, str(value)]
    return [*options, "--pyflink"] if pyflink else options
