"""A running job, shown: rates are what happened between two pictures, whatever came between."""

from __future__ import annotations

import dataclasses
import io
import threading

import pytest
from patience import PATIENCE
from rich.console import Console

from penstock.common.job_status import JobStatus
from penstock.common.metrics import MetricReading
from penstock.datastream import StreamExecutionEnvironment, live
from penstock.datastream.rates import vertex_rates
from penstock.graph.execution_graph import SubtaskId
from penstock.graph.job_graph import build_job_graph
from penstock.jobmanager.progress import Progress
from penstock.network.messages import Starting, SubtaskMetrics, SubtaskReport


@pytest.fixture
def graph():
    env = StreamExecutionEnvironment().set_parallelism(2)
    env.from_collection([1]).key_by(lambda n: n).reduce(max).print()
    return build_job_graph(env._program.stream_graph(), "sums")


def picture(attempt=1, metrics=None, **changes):
    values = {
        "status": JobStatus.RUNNING,
        "attempt": attempt,
        "restarts": attempt - 1,
        "completed_checkpoints": 3,
        "failed_checkpoints": 0,
        "last_checkpoint_ms": 12,
        "metrics": metrics or {},
        "slots": {},
        "strangers": 0,
        **changes,
    }
    return Progress(**values)


def metrics(records, busy, pressed=0, idle=0, queued=0):
    return SubtaskMetrics(records, 2 * records, busy, pressed, idle, queued, 0)


def test_rates_are_differences_summed_over_the_subtasks(graph):
    before = picture(metrics={SubtaskId(1, 0): metrics(100, 10)})
    after = picture(
        metrics={
            SubtaskId(1, 0): metrics(300, 40, pressed=10, queued=2),
            SubtaskId(1, 1): metrics(50, 50, idle=10, queued=1),
        }
    )
    _, reduced = vertex_rates(graph, before, after, seconds=2.0)
    assert (reduced.records_in, reduced.records_out, reduced.queued) == (125, 250, 3)
    assert (reduced.busy, reduced.backpressured, reduced.idle) == (0.8, 0.1, 0.1)


def test_after_a_restart_the_counters_begin_anew(graph):
    before = picture(1, {SubtaskId(1, 0): metrics(1000, 10)})
    after = picture(2, {SubtaskId(1, 0): metrics(30, 10)})
    assert vertex_rates(graph, before, after, 1.0)[1].records_in == 30


def test_nothing_known_is_nothing_divided(graph):
    rates = vertex_rates(graph, picture(), picture(), 1.0)
    assert [(rate.records_in, rate.busy) for rate in rates] == [(0, 0), (0, 0)]


def test_what_is_restored_is_told_of_the_slot_that_has_most_to_do(graph):
    starting = {
        0: Starting("restoring 'a' (1/2)", 900_000_000, 1_000_000_000),
        1: Starting("restoring 'a' (2/2)", 512_000_000, 1_000_000_000),
    }
    text = live.line("job", [], picture(starting=starting))
    assert "slot 1 is restoring 'a' (2/2), 512.0 of 1,000.0 MB read" in text


def shown_text(graph, mode, terminal, monkeypatch, **changes):
    for name in ("_REFRESH_SECONDS", "_FIRST_LINE_SECONDS"):
        monkeypatch.setattr(live, name, 0.01)
    asked = threading.Event()
    count = iter(range(10**9))

    def progress():
        if next(count) == 3:
            asked.set()
        return picture(metrics={SubtaskId(1, 0): metrics(5, 9, idle=1)}, **changes)

    out = io.StringIO()
    console = Console(file=out, force_terminal=terminal, width=120)
    with live.shown(mode, lambda: graph, progress, console):
        if mode != "off":
            assert asked.wait(PATIENCE)
    return out.getvalue()


def test_in_a_terminal_there_is_a_table(graph, monkeypatch):
    text = shown_text(graph, "auto", True, monkeypatch, failed_checkpoints=2)
    assert "Reduce -> Print" in text and "backpressured" in text
    assert "3 checkpoints, the last took 12 ms, 2 failed, 0 restarts" in text


def test_elsewhere_there_are_lines(graph, monkeypatch):
    first = shown_text(graph, "auto", False, monkeypatch).splitlines()[0]
    assert first.startswith("sums: running, attempt 1, 3 checkpoints")
    assert "\x1b" not in first


def test_off_is_silence(graph, monkeypatch):
    assert shown_text(graph, "off", True, monkeypatch) == ""


def test_event_time_is_shown_where_there_is_one(graph):
    def text(seen):
        console = Console(file=io.StringIO(), width=200)
        rates = vertex_rates(graph, picture(), picture(metrics=seen), 1.0)
        console.print(live.picture("sums", rates, picture(metrics=seen)))
        return console.file.getvalue()

    assert "watermark" not in text({})
    source = dataclasses.replace(metrics(5, 9), watermark=1_000)
    shown = text({SubtaskId(0, 0): source})
    assert "watermark" in shown and "00:00:01.000Z" in shown


def test_what_stands_is_a_line_below_the_table(graph):
    console = Console(file=io.StringIO(), width=200)
    console.print(live.picture("sums", [], picture(), ["event time stands for 7 s"]))
    assert console.file.getvalue().splitlines()[-1].strip() == "event time stands for 7 s"


def test_late_records_are_counted_over_all_operators():
    reading = MetricReading("Window", "uid", 0, "numLateRecordsDropped", 3)
    reports = {SubtaskId(0, n): SubtaskReport((reading,), None) for n in range(2)}
    assert "6 late records dropped" in live.line("job", [], picture(reports=reports))
