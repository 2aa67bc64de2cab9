"""From two pictures of a job to how fast it is: per vertex, what happened between them."""

from __future__ import annotations

from dataclasses import dataclass

from penstock.checkpoint.handles import MIN_WATERMARK
from penstock.graph.job_graph import JobGraph
from penstock.jobmanager.progress import Progress


@dataclass(frozen=True)
class VertexRates:
    """One vertex between two pictures: records per second, shares of time, buffers that wait."""

    name: str
    parallelism: int
    records_in: float
    records_out: float
    busy: float
    backpressured: float
    idle: float
    queued: int
    watermark: int | None = None
    """The lowest of its subtasks that are not idle; None: there is no event time yet."""


def vertex_rates(
    graph: JobGraph, before: Progress, after: Progress, seconds: float
) -> list[VertexRates]:
    """The rates of all vertices in the order of the program.

    After a restart counters begin anew: then what counts is the time since.
    """
    same = before.attempt == after.attempt
    rates = []
    for vertex in graph.vertices:
        totals = [0] * 5
        queued = 0
        watermarks = []
        for subtask, now in after.metrics.items():
            if subtask.vertex != vertex.id:
                continue
            then = before.metrics.get(subtask) if same else None
            counted = (
                (now.records_in, then.records_in if then else 0),
                (now.records_out, then.records_out if then else 0),
                (now.busy_ns, then.busy_ns if then else 0),
                (now.backpressured_ns, then.backpressured_ns if then else 0),
                (now.idle_ns, then.idle_ns if then else 0),
            )
            for position, (upto, since) in enumerate(counted):
                totals[position] += upto - since
            queued += now.queued
            if not now.idle:
                watermarks.append(now.watermark)
        spent = sum(totals[2:]) or 1
        rates.append(
            VertexRates(
                vertex.name,
                vertex.parallelism,
                totals[0] / seconds,
                totals[1] / seconds,
                totals[2] / spent,
                totals[3] / spent,
                totals[4] / spent,
                queued,
                _told(min(watermarks, default=MIN_WATERMARK)),
            )
        )
    return rates


def _told(watermark: int) -> int | None:
    return None if watermark == MIN_WATERMARK else watermark
