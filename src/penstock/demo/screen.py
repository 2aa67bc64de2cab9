"""The demo in a terminal: a live picture; plain lines where there is no terminal."""

from __future__ import annotations

import time

from rich.console import Console, Group
from rich.live import Live
from rich.table import Table
from rich.text import Text

from penstock.demo.payments import MERCHANTS, MINUTES, PAYMENTS
from penstock.demo.results import Results
from penstock.jobmanager.progress import Progress


def minutes(results: Results) -> Table:
    """The minutes that are final."""
    table = Table(title="Penstock: UPI payments per merchant and minute, by when they were made")
    table.add_column("merchant", no_wrap=True)
    for minute in range(MINUTES):
        table.add_column(f"min {minute + 1}", justify="right")
    for merchant in MERCHANTS:
        counts = [results.counts.get((merchant, minute)) for minute in range(MINUTES)]
        table.add_row(merchant, *("" if count is None else f"{count:,}" for count in counts))
    return table


def picture(results: Results, progress: Progress, note: str) -> Group:
    """What the terminal shows."""
    lines = [Text(status_line(results, progress)), Text(late_line(results))]
    return Group(minutes(results), *lines, Text(note, style="bold"))


def status_line(results: Results, progress: Progress) -> str:
    return (
        f"{progress.status.value.lower()}, attempt {progress.attempt}; "
        f"{results.final:,} of {PAYMENTS:,} payments final; "
        f"{progress.completed_checkpoints} checkpoints; {progress.restarts} restarts"
    )


def late_line(results: Results) -> str:
    """How many payments came after their minute was closed, and whose the last was."""
    if not results.late:
        return "no payment came too late so far"
    last = results.late[-1]
    return (
        f"{len(results.late)} payments came too late, on the side; the last: number "
        f"{last['id']:,} of {last['merchant']}"
    )


class Screen:
    """Shows the demo on a console."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._live = Live(console=console, auto_refresh=False) if console.is_terminal else None
        self._shown = 0.0
        self._note = ""

    def __enter__(self) -> Screen:
        if self._live is not None:
            self._live.start()
        return self

    def __exit__(self, *exc_info: object) -> None:
        if self._live is not None:
            self._live.stop()

    def due(self) -> bool:
        pause = 0.1 if self._live is not None else 1.0
        return time.monotonic() - self._shown >= pause

    def show(self, results: Results, progress: Progress, note: str) -> None:
        self._shown = time.monotonic()
        if self._live is not None:
            self._live.update(picture(results, progress, note), refresh=True)
            return
        if note != self._note:
            self._console.print(note)
            self._note = note
        self._console.print(status_line(results, progress))
