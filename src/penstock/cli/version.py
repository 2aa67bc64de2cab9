"""`penstock version`."""

from __future__ import annotations

import click

from penstock import __version__


@click.command()
def command() -> None:
    """Print the version."""
    click.echo(f"penstock {__version__}")
