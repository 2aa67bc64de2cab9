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
    """List the operators in PATH with their states, types, sizes, parallelism and backend."""
    from penstock.inspection.catalog import Catalog

    catalog = Catalog.open(path)
    metadata = catalog.snapshot.metadata
    taken = datetime.fromtimestamp(metadata.timestamp / 1000, timezone.utc)
    what = "savepoint" if catalog.snapshot.checkpoint is None else "checkpoint"
    backends = sorted({o.backend for o in catalog.operators.values() if o.backend})
    click.echo(
        f"{what} {metadata.checkpoint} of job {metadata.job_id}, {taken:%Y-%m-%d %X} UTC, for "
        f"{'state backend ' + ', '.join(backends) if backends else 'any state backend'}"
    )
    for uid, operator in catalog.operators.items():
        saved = catalog.saved(uid)
        finished = ", finished" if saved.vertex.finished() else ""
        click.echo(
            f"\n{operator.name} (uid {uid}): {saved.size:,} bytes, "
            f"parallelism {operator.parallelism} of {operator.max_parallelism}{finished}"
        )
        for state in operator.states:
            click.echo(
                f"  {state.kind} state {state.name!r}: {state.type_info}, {state.size:,} bytes"
            )
        for held in saved.other_holdings():
            click.echo(f"  {held}")
    return 0


@command.command("get")
@click.argument("path")
@click.option("--uid", required=True, help="The uid of the operator.")
@click.option("--state", "name", required=True, help="The name of the state.")
@click.option("--key", help="The key, as JSON or as plain text; without it the first entries.")
@click.option("--limit", default=20, show_default=True, help="Without a key: so many entries.")
@click.option(
    "--trust", is_flag=True, help="Unpickle what is pickled, which runs code that is in it."
)
def get(path: str, uid: str, name: str, key: str | None, limit: int, trust: bool) -> int:
    """Show what is in PATH for a key of a state.

    A key is read as JSON (42, "a", ["a", 1] for a tuple) and as plain text; where that does not
    find it, keys are compared with it by how they look. Of what is pickled only type and size are
    shown, unless you trust whoever wrote it.
    """
    from penstock.cli.state_text import text_of
    from penstock.inspection.catalog import Catalog
    from penstock.inspection.lookup import Lookup

    catalog = Catalog.open(path)
    info = catalog.operator(uid).state(name)
    lookup = Lookup(catalog, uid, info, trust)
    if key is not None:
        click.echo(text_of(info, lookup.find(key)))
        return 0
    shown = more = 0
    for found, value in lookup.entries():
        if shown < limit:
            shown += 1
            click.echo(f"{found!r}: {text_of(info, value, indent='  ')}")
        else:
            more += 1
    if more:
        click.echo(f"... and {more:,} more")
    return 0
