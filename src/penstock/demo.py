"""The demo: payments, a running total per merchant, and a slot killed half-way.

    python -m penstock.demo

It runs on local Spark, shows the totals as they become final, kills one of its own slots with
kill -9, recovers from the last checkpoint, and ends by itself. Every total is then compared with
the one that a plain loop gives.
"""

from __future__ import annotations

import os
import signal
import sys
import tempfile
import time
from collections.abc import Iterator
from typing import Any

from rich.console import Console, Group
from rich.live import Live
from rich.table import Table
from rich.text import Text

from penstock.common import Configuration, Types, WatermarkStrategy
from penstock.datastream import KeyedProcessFunction, RuntimeContext, StreamExecutionEnvironment
from penstock.datastream.connectors.data_generator import DataGeneratorSource
from penstock.datastream.state import ValueStateDescriptor
from penstock.jobmanager.progress import Progress

PAYMENTS = 48_000
PER_SECOND = 4_000
MERCHANTS = ["Chai Point", "BigBasket", "IRCTC", "Apollo", "BookMyShow", "Udupi Cafe", "Metro"]


def payment(number: int) -> dict[str, Any]:
    """Payment `number`; the same every time, so that the result can be checked."""
    mixed = (number * 2654435761) & 0xFFFFFFFF
    return {
        "merchant": MERCHANTS[(mixed >> 16) % len(MERCHANTS)],
        "paise": 100 + mixed % 250_000,
    }


class RunningTotal(KeyedProcessFunction):
    """Counts and adds up the payments of each merchant."""

    def open(self, runtime_context: RuntimeContext) -> None:
        self._count = runtime_context.get_state(ValueStateDescriptor("count", Types.LONG()))
        self._paise = runtime_context.get_state(ValueStateDescriptor("paise", Types.LONG()))

    def process_element(self, value: dict[str, Any], ctx: Any) -> Iterator[tuple[str, int, int]]:
        count = (self._count.value() or 0) + 1
        paise = (self._paise.value() or 0) + value["paise"]
        self._count.update(count)
        self._paise.update(paise)
        yield ctx.get_current_key(), count, paise


class Totals:
    """What has come out so far, and whether anything came twice or was left out."""

    def __init__(self) -> None:
        self.paise = dict.fromkeys(MERCHANTS, 0)
        self.count = dict.fromkeys(MERCHANTS, 0)
        self.seen = 0
        self.wrong = 0

    def add(self, merchant: str, count: int, paise: int) -> None:
        # Results of one merchant come in order: each count is one more than the last.
        if count != self.count[merchant] + 1:
            self.wrong += 1
        self.count[merchant], self.paise[merchant] = count, paise
        self.seen += 1


def expected() -> dict[str, tuple[int, int]]:
    """The same totals from a plain loop."""
    totals = dict.fromkeys(MERCHANTS, (0, 0))
    for number in range(PAYMENTS):
        record = payment(number)
        count, paise = totals[record["merchant"]]
        totals[record["merchant"]] = (count + 1, paise + record["paise"])
    return totals


def picture(totals: Totals, progress: Progress, note: str) -> Group:
    """What the terminal shows."""
    table = Table(title="Penstock: payments per merchant, exactly once")
    table.add_column("merchant")
    table.add_column("payments", justify="right")
    table.add_column("total", justify="right")
    table.add_column("")
    most = max(*totals.paise.values(), 1)
    for merchant in MERCHANTS:
        paise = totals.paise[merchant]
        bar = "█" * round(28 * paise / most)
        table.add_row(merchant, f"{totals.count[merchant]:,}", f"₹{paise / 100:,.2f}", bar)
    return Group(table, Text(status_line(totals, progress)), Text(note, style="bold"))


def status_line(totals: Totals, progress: Progress) -> str:
    return (
        f"{progress.status.value.lower()}, attempt {progress.attempt}; "
        f"{totals.seen:,} of {PAYMENTS:,} payments final; "
        f"{progress.completed_checkpoints} checkpoints; {progress.restarts} restarts"
    )


def run(console: Console, directory: str) -> Totals:
    """Run the job and show it; the totals at its end."""
    settings = {
        "parallelism.default": 2,
        "execution.checkpointing.interval": "300 ms",
        "execution.checkpointing.dir": f"file://{directory}",
        "restart-strategy.fixed-delay.delay": "500 ms",
    }
    env = StreamExecutionEnvironment.get_execution_environment(Configuration.from_dict(settings))
    source = DataGeneratorSource(payment, PAYMENTS, PER_SECOND)
    results = (
        env.from_source(source, WatermarkStrategy.no_watermarks(), "payments")
        .key_by(lambda record: record["merchant"])
        .process(RunningTotal())
        .name("Running total")
        .execute_and_collect("demo")
    )
    assert not isinstance(results, list)
    totals, note = Totals(), ""
    screen = _Screen(console)
    with screen:
        for merchant, count, paise in results:
            totals.add(merchant, count, paise)
            if not note and totals.seen > PAYMENTS / 2:
                note = _kill_a_slot(results.job_client.progress())
            if screen.due():
                screen.show(totals, results.job_client.progress(), note)
        screen.show(totals, results.job_client.progress(), note)
    return totals


def _kill_a_slot(progress: Progress) -> str:
    slot, (host, pid) = max(progress.slots.items())
    os.kill(pid, signal.SIGKILL)
    return f"kill -9 of slot {slot} (process {pid} on {host}); the job goes on from its checkpoint"


class _Screen:
    """The live picture in a terminal; plain lines where there is none."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._live = Live(console=console, auto_refresh=False) if console.is_terminal else None
        self._shown = 0.0
        self._note = ""

    def __enter__(self) -> None:
        if self._live is not None:
            self._live.start()

    def __exit__(self, *exc_info: object) -> None:
        if self._live is not None:
            self._live.stop()

    def due(self) -> bool:
        pause = 0.1 if self._live is not None else 1.0
        return time.monotonic() - self._shown >= pause

    def show(self, totals: Totals, progress: Progress, note: str) -> None:
        self._shown = time.monotonic()
        if self._live is not None:
            self._live.update(picture(totals, progress, note), refresh=True)
            return
        if note != self._note:
            self._console.print(note)
            self._note = note
        self._console.print(status_line(totals, progress))


def main() -> int:
    console = Console()
    console.print("Starting local Spark ...")
    with tempfile.TemporaryDirectory(prefix="penstock-demo-") as directory:
        totals = run(console, directory)
    got = {merchant: (totals.count[merchant], totals.paise[merchant]) for merchant in MERCHANTS}
    if got != expected() or totals.wrong:
        console.print(f"[red]The totals are wrong: {totals.wrong} results out of order.[/red]")
        return 1
    if not console.is_terminal:
        for merchant, (count, paise) in got.items():
            console.print(f"{merchant:12} {count:>7,} {'₹' + format(paise / 100, ',.2f'):>16}")
    console.print(
        f"[green]Exact:[/green] all {PAYMENTS:,} payments counted once, although a slot was killed."
    )
    return 0


if __name__ == "__main__":
    sys.exit(main())
