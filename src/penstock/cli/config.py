"""`penstock config`: what is in force, and where each value came from."""

from __future__ import annotations

import re
from typing import Any

import click

from penstock.cli.exits import EXIT_FAILED
from penstock.cli.options import Asked, about_a_program
from penstock.common.config_layers import Settings, in_force
from penstock.common.config_options import OPTIONS, Option, parse_duration_ms
from penstock.common.flink_keys import Kind, kind_of

_SECRET = re.compile(r"secret|password|token|access\.?key", re.IGNORECASE)


@click.command(context_settings={"allow_interspersed_args": False})
@about_a_program(required=False)
def command(asked: Asked) -> int:
    """Show the configuration in force, and where each value came from.

    With a JOB, the program is run up to its first execute(), and what it sets is shown too.
    """
    settings: Settings = in_force(asked.file(), asked.overrides())
    if asked.job is not None:
        from penstock.cli.preview import preview

        previewed = preview(asked)
        if previewed is None:
            return EXIT_FAILED
        settings = previewed.settings
    _show(rows(settings))
    return 0


def rows(settings: Settings) -> list[tuple[str, str, str]]:
    """Key, value and origin of everything that is set or has a default."""
    found = []
    for option in OPTIONS:
        if option.key in settings:
            setting = settings[option.key]
            found.append((option.key, setting.value, setting.origin))
        else:
            found.append((option.key, _default(option), "default"))
    known = {option.key for option in OPTIONS}
    for key in sorted(set(settings) - known):
        value = "(not shown)" if _SECRET.search(key) else settings[key].value
        meaningless = kind_of(key) is Kind.NO_MEANING and not key.startswith("spark.")
        note = ", no meaning here" if meaningless else ""
        found.append((key, value, settings[key].origin + note))
    return found


def _default(option: Option[Any]) -> str:
    if option.default is None or option.default in ((), {}):
        return "(not set)"
    if option.parse is parse_duration_ms:
        return f"{option.default} ms"
    shown = str(option.default)
    return shown.lower() if isinstance(option.default, bool) else shown


def _show(table: list[tuple[str, str, str]]) -> None:
    from rich.console import Console
    from rich.text import Text

    keys = max(len(key) for key, _, _ in table)
    values = min(40, max(len(value) for _, value, _ in table))
    console = Console()
    for key, value, origin in table:
        line = f"{key:{keys}}  {value:{values}}  {origin}"
        # A value that is cut in two cannot be copied or searched for: no table, no wrapping.
        console.print(Text(line, "dim" if origin == "default" else ""), soft_wrap=True)
