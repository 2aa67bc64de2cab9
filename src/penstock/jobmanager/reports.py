"""What user functions of all subtasks reported, put together."""

from __future__ import annotations

import pickle
from collections.abc import Mapping
from typing import Any

from penstock.common.accumulators import merged_results
from penstock.common.metrics import MetricReading
from penstock.graph.execution_graph import SubtaskId
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


def _ordered(reports: Reports) -> list[tuple[SubtaskId, SubtaskReport]]:
    return sorted(reports.items(), key=lambda item: item[0])
