"""What user functions of all subtasks reported, put together."""

from __future__ import annotations

import difflib
import pickle
from collections.abc import Mapping
from typing import Any

from penstock.common.accumulators import merged_results
from penstock.common.metrics import MetricReading
from penstock.graph.execution_graph import SubtaskId
from penstock.graph.job_graph import JobGraph
from penstock.network.messages import SubtaskReport

Reports = Mapping[SubtaskId, SubtaskReport]


def readings_of(reports: Reports) -> tuple[MetricReading, ...]:
    """All metrics, in the order of vertices and subtasks."""
    return tuple(reading for _, report in _ordered(reports) for reading in report.metrics)


def late_records(reports: Reports) -> int:
    """Records that windows and joins left out because they came too late."""
    return sum(int(r.value) for r in readings_of(reports) if r.name == "numLateRecordsDropped")


def accumulator_results(reports: Reports) -> dict[str, Any]:
    """The accumulators by name, merged over subtasks and over operators."""
    return merged_results(
        part
        for _, report in _ordered(reports)
        if report.accumulators is not None
        for part in pickle.loads(report.accumulators)
    )


def unknown_side_outputs(graph: JobGraph, reports: Reports) -> list[str]:
    """What a program that has ended well reads and nobody wrote, though others were written to.

    An OutputTag is only a name, so a wrong one cannot be told before: the stream is just empty.
    """
    emitted: dict[str, set[str]] = {}
    for report in reports.values():
        for uid, tags in report.tags.items():
            emitted.setdefault(uid, set()).update(tags)
    chained = [(edge.source, edge.tag) for vertex in graph.vertices for edge in vertex.chained]
    read = [*chained, *((edge.node, edge.tag) for edge in graph.edges)]
    notes = []
    for node in (node for vertex in graph.vertices for node in vertex.nodes):
        wanted = {tag for source, tag in read if source == node.id and tag is not None}
        unread = emitted.get(node.uid, set()) - wanted
        for tag in sorted(wanted - emitted.get(node.uid, set())):
            if not unread:
                continue
            near = difflib.get_close_matches(tag, sorted(unread), n=1, cutoff=0.0)[0]
            notes.append(
                f"side output {tag!r} of operator {node.name!r} is read and got no records, and "
                f"nobody reads its side output {near!r}: is the name of the OutputTag right?"
            )
    return notes


def _ordered(reports: Reports) -> list[tuple[SubtaskId, SubtaskReport]]:
    return sorted(reports.items(), key=lambda item: item[0])
