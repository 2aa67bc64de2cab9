"""`penstock init`: a small project to begin with."""

from __future__ import annotations

from collections.abc import Iterator
from importlib.resources import files
from pathlib import Path

import click

_SUFFIX = ".template"
_NAME = "NAME"
"""What the templates have where the name of the new folder goes."""


@click.command()
@click.argument("folder", metavar="DIR", type=click.Path(file_okay=False, path_type=Path))
def command(folder: Path) -> None:
    """Write a small project into DIR: a job, its test, its settings and a README."""
    written = dict(project(folder.absolute().name))
    if taken := sorted(name for name in written if (folder / name).exists()):
        raise click.UsageError(f"{folder} has a {taken[0]} already; name another folder")
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for name, text in written.items():
            (folder / name).write_text(text, encoding="utf-8")
    except OSError as error:
        raise click.UsageError(f"{error.filename}: {error.strerror}") from error
    click.echo(f"{folder}: {', '.join(sorted(written))}")
    click.echo(f"next: cd {folder} && pytest && penstock run job.py")


def project(name: str) -> Iterator[tuple[str, str]]:
    """The files of a new project: the name of each, and its text."""
    for template in files("penstock.cli").joinpath("new_project").iterdir():
        text = template.read_text(encoding="utf-8")
        yield template.name.removesuffix(_SUFFIX), text.replace(_NAME, name)
