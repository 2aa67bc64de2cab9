"""Where the command line starts: finds the command, and turns mistakes into one line."""

from __future__ import annotations

import difflib
import sys
from collections.abc import Sequence
from importlib import import_module

import click

from penstock import __version__
from penstock.cli.exits import EXIT_FAILED, EXIT_INTERRUPTED, EXIT_USAGE
from penstock.errors import ConfigurationError, PenstockError

COMMANDS = (
    "init",
    "run",
    "info",
    "list",
    "savepoint",
    "stop",
    "rescale",
    "cancel",
    "state",
    "config",
    "version",
)


_OF_FLINK = {
    **dict.fromkeys(["-c", "--class"], "The program is the Python file that is given."),
    **dict.fromkeys(
        ["-m", "--jobmanager", "-t", "--target"],
        "Jobs run on Spark: --master says where, and commands about jobs find them by themselves.",
    ),
}
"""Options of Flink's command line that a program on Spark cannot have, and what there is."""

_NAMES_A_PROGRAM = {"-py", "--python"}


class _Commands(click.Group):
    """Imports a command when it is asked for: `penstock version` need not wait for the others."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command:
        if cmd_name not in COMMANDS:
            near = difflib.get_close_matches(cmd_name, COMMANDS, n=1)
            hint = f"; did you mean {near[0]}?" if near else f"; there are {', '.join(COMMANDS)}"
            raise click.UsageError(f"no command {cmd_name!r}{hint}")
        command: click.Command = import_module(f"penstock.cli.{cmd_name}").command
        return command


@click.group(cls=_Commands, invoke_without_command=True)
@click.version_option(__version__, message="penstock %(version)s")
@click.pass_context
def penstock(context: click.Context) -> None:
    """Stateful stream processing with PyFlink's API, on Spark."""
    if context.invoked_subcommand is None:
        click.echo(context.get_help())


def main() -> None:
    sys.exit(run(sys.argv[1:]))


def run(arguments: Sequence[str]) -> int:
    """Do what the arguments say; the exit code."""
    try:
        code = penstock.main(list(arguments), prog_name="penstock", standalone_mode=False)
    except click.NoSuchOption as error:
        hint = _OF_FLINK.get(error.option_name)
        if hint is None and not _NAMES_A_PROGRAM.isdisjoint(arguments):
            hint = "Options of the program itself stand behind `--`."
        return _refuse(error.format_message() + (f" {hint}" if hint else ""))
    except click.ClickException as error:
        return _refuse(error.format_message())
    except ConfigurationError as error:
        return _refuse(error.summary())
    except PenstockError as error:
        print("penstock:", error.summary(), file=sys.stderr)
        return EXIT_FAILED
    except click.Abort:
        return EXIT_INTERRUPTED
    return code or 0


def _refuse(message: str) -> int:
    print("penstock:", " ".join(message.split()), file=sys.stderr)
    return EXIT_USAGE
