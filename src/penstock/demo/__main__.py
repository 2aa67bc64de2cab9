"""Runs the demo: see `penstock.demo`."""

from __future__ import annotations

import os
import signal
import sys
import tempfile
from pathlib import Path

from rich.console import Console

from penstock.demo.chart import chart
from penstock.demo.job import submit
from penstock.demo.payments import PAYMENTS
from penstock.demo.results import Results
from penstock.demo.screen import Screen, minutes
from penstock.jobmanager.progress import Progress

CHART = Path("upi-per-minute.svg")


def run(screen: Screen, directory: str) -> Results:
    """Run the job and show it; what came out at its end."""
    results, note = Results(), ""
    job = submit(directory)
    with screen:
        for result in job:
            results.add(result)
            if not note and results.final > PAYMENTS * 0.4:
                note = _kill_a_slot(job.job_client.progress())
            if screen.due():
                screen.show(results, job.job_client.progress(), note)
        screen.show(results, job.job_client.progress(), note)
    return results


def _kill_a_slot(progress: Progress) -> str:
    slot, (host, pid) = max(progress.slots.items())
    os.kill(pid, signal.SIGKILL)
    return f"kill -9 of slot {slot} (process {pid} on {host}); the job goes on from its checkpoint"


def main() -> int:
    console = Console()
    console.print("Starting local Spark ...")
    with tempfile.TemporaryDirectory(prefix="penstock-demo-") as directory:
        results = run(Screen(console), directory)
    if not results.exact():
        console.print(
            f"[red]The result is wrong: {results.twice} minutes came twice, {results.final:,} of "
            f"{PAYMENTS:,} payments are accounted for.[/red]"
        )
        return 1
    if not console.is_terminal:
        console.print(minutes(results))
    CHART.write_text(chart(results), encoding="utf-8")
    console.print(
        f"[green]Exact:[/green] all {PAYMENTS:,} payments are in their minute or among the "
        f"{len(results.late)} that came too late, each once, although a slot was killed."
    )
    console.print(f"A picture of it: {CHART.resolve()}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
