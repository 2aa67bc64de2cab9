"""A running job, shown: as a table that keeps itself current, or as a line now and then.

In a terminal and in a notebook the table stays in place and what the program prints appears above
it. Elsewhere (a log file, a pipe) one line says how the job is doing, at growing distances.
"""

from __future__ import annotations

import contextlib
import contextvars
import threading
import time
from collections.abc import Callable, Iterable, Iterator

from rich.console import Console, Group
from rich.live import Live
from rich.table import Table
from rich.text import Text

from penstock.datastream.notebook import NotebookPicture
from penstock.datastream.rates import VertexRates, vertex_rates
from penstock.graph.execution_graph import build_execution_graph
from penstock.graph.job_graph import JobGraph
from penstock.jobmanager.progress import Progress
from penstock.jobmanager.reports import late_records
from penstock.jobmanager.stalls import Stalls
from penstock.jobmanager.watermarks import watermark_text

_REFRESH_SECONDS = 0.5
_FIRST_LINE_SECONDS = 10.0
_LONGEST_PAUSE_SECONDS = 60.0

Graph = Callable[[], JobGraph]
"""The program as it runs now: its parallelism may change."""


@contextlib.contextmanager
def shown(
    mode: str, graph: Graph, progress: Callable[[], Progress], console: Console | None = None
) -> Iterator[None]:
    """Show the job while the block runs: `mode` is auto, table, lines or off."""
    console = console or Console(stderr=True)
    if mode == "auto":
        mode = "table" if console.is_terminal or console.is_jupyter else "lines"
    if mode == "off":
        yield
        return
    show = _as_lines
    if mode == "table":
        show = _in_notebook if console.is_jupyter else _as_table
    stop = threading.Event()
    # A notebook knows by its context which cell a thread belongs to.
    context = contextvars.copy_context()
    thread = threading.Thread(
        target=lambda: context.run(show, console, graph, progress, stop),
        name="penstock-progress",
        daemon=True,
    )
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join()


def _as_table(
    console: Console, graph: Graph, progress: Callable[[], Progress], stop: threading.Event
) -> None:
    before, seen_at, stalls = progress(), time.monotonic(), Stalls()
    # What is left on the screen at the end is the last picture, not an empty place.
    with Live(console=console, auto_refresh=False, transient=False) as live:
        while True:
            ended = stop.wait(_REFRESH_SECONDS)
            now, after = time.monotonic(), progress()
            now_graph = graph()
            rates = vertex_rates(now_graph, before, after, now - seen_at)
            laid_out = build_execution_graph(now_graph)
            held = stalls.look(laid_out, after, int(time.time() * 1000))
            live.update(picture(now_graph.name, rates, after, held.values()), refresh=True)
            if ended:
                return
            before, seen_at = after, now


def _in_notebook(
    console: Console, graph: Graph, progress: Callable[[], Progress], stop: threading.Event
) -> None:
    place, stalls = NotebookPicture(), Stalls()
    before, seen_at, ended = progress(), time.monotonic(), False
    while not ended:
        ended = stop.wait(_REFRESH_SECONDS)
        now, after = time.monotonic(), progress()
        rates = vertex_rates(graph(), before, after, now - seen_at)
        held = stalls.look(build_execution_graph(graph()), after, int(time.time() * 1000))
        place.draw(picture(graph().name, rates, after, held.values()))
        before, seen_at = after, now


def _as_lines(
    console: Console, graph: Graph, progress: Callable[[], Progress], stop: threading.Event
) -> None:
    before, seen_at, pause = progress(), time.monotonic(), _FIRST_LINE_SECONDS
    while not stop.wait(pause):
        now, after = time.monotonic(), progress()
        rates = vertex_rates(graph(), before, after, now - seen_at)
        console.print(line(graph().name, rates, after), soft_wrap=True, highlight=False)
        before, seen_at = after, now
        pause = min(2 * pause, _LONGEST_PAUSE_SECONDS)


def picture(
    name: str,
    rates: list[VertexRates],
    progress: Progress,
    held: Iterable[str] = (),
) -> Group:
    """The table; the lines of `held` say what stands still."""
    table = Table(title=name, title_justify="left")
    table.add_column("operators", overflow="fold")
    for header in ("x", "in/s", "out/s", "busy", "backpressured", "idle", "queued"):
        table.add_column(header, justify="right")
    timed = any(rate.watermark is not None for rate in rates)
    if timed:
        table.add_column("watermark", justify="right")
    busiest = max((rate.busy for rate in rates), default=0.0)
    for rate in rates:
        # The busy one behind backpressured ones is the bottleneck: what a reader looks for.
        style = "bold" if rate.busy == busiest and rate.busy > 0.5 else ""
        marks = [_clock(rate.watermark)] if timed else []
        table.add_row(
            rate.name,
            str(rate.parallelism),
            f"{rate.records_in:,.0f}",
            f"{rate.records_out:,.0f}",
            f"{rate.busy:.0%}",
            f"{rate.backpressured:.0%}",
            f"{rate.idle:.0%}",
            str(rate.queued),
            *marks,
            style=style,
        )
    return Group(table, *(Text(note) for note in (_summary(progress), *held)))


def _clock(watermark: int | None) -> str:
    if watermark is None:
        return ""
    text = watermark_text(watermark)
    # The date and the number are of no use in a narrow column.
    return text.partition("(")[2].rstrip(")").partition(" ")[2] or text


def line(name: str, rates: list[VertexRates], progress: Progress) -> str:
    """The same in one line: what flows in and out, and who is busiest."""
    read = sum(rate.records_in for rate in rates[:1])
    text = f"{name}: {_summary(progress)}; {read:,.0f} records/s"
    if rates:
        busiest = max(rates, key=lambda rate: rate.busy)
        text += f"; busiest: {busiest.name} ({busiest.busy:.0%})"
    return text


def _summary(progress: Progress) -> str:
    parts = [
        progress.status.value.lower(),
        f"attempt {progress.attempt}",
        f"{progress.completed_checkpoints} checkpoints",
    ]
    if progress.last_checkpoint_ms is not None:
        parts.append(f"the last took {progress.last_checkpoint_ms} ms")
    if progress.failed_checkpoints:
        parts.append(f"{progress.failed_checkpoints} failed")
    parts.append(f"{progress.restarts} restarts")
    if progress.starting:
        # The one that has most to do is the one to wait for.
        slot, busy = max(progress.starting.items(), key=lambda item: item[1].size - item[1].read)
        parts.append(f"slot {slot} is {busy}")
    late = late_records(progress.reports)
    if late:
        parts.append(f"{late:,} late records dropped")
    return ", ".join(parts)
