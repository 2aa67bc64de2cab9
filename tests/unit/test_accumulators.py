"""Accumulators: what they gather, and how parts become one."""

from __future__ import annotations

import pytest

from penstock.common import (
    AverageAccumulator,
    DoubleCounter,
    DoubleMaximum,
    DoubleMinimum,
    Histogram,
    IntCounter,
    IntMaximum,
    IntMinimum,
    JobExecutionResult,
    ListAccumulator,
    LongCounter,
    LongMaximum,
    LongMinimum,
)
from penstock.common.accumulators import FailedAccumulator, merged_results
from penstock.errors import ProgramError


@pytest.mark.parametrize(
    ("kind", "empty", "expected"),
    [
        (IntCounter, 0, 9),
        (LongCounter, 0, 9),
        (DoubleCounter, 0.0, 9.0),
        (AverageAccumulator, 0.0, 3.0),
        (IntMinimum, None, 1),
        (LongMinimum, None, 1),
        (DoubleMinimum, None, 1),
        (IntMaximum, None, 5),
        (LongMaximum, None, 5),
        (DoubleMaximum, None, 5),
        (Histogram, {}, {1: 1, 3: 1, 5: 1}),
        (ListAccumulator, [], [3, 5, 1]),
    ],
)
def test_parts_are_merged(kind, empty, expected) -> None:
    parts = [kind(), kind(), kind()]
    for part, values in zip(parts, ([3], [], [5, 1]), strict=True):
        for value in values:
            part.add(value)
    merged = merged_results([{"it": part} for part in parts])
    assert merged == {"it": expected}
    assert merged_results([{"it": part} for part in parts]) == merged, "the parts are as before"
    parts[0].reset_local()
    assert parts[0].get_local_value() == empty


def test_two_types_under_one_name_are_an_error_of_that_name_only() -> None:
    results = merged_results([{"a": IntCounter(1), "b": IntCounter(2)}, {"a": Histogram()}])
    assert isinstance(results["a"], FailedAccumulator) and results["b"] == 2
    result = JobExecutionResult("id", 12, accumulators=results)
    assert result.get_accumulator_result("b") == 2 and result.get_net_runtime() == 12
    with pytest.raises(ProgramError, match="added both as IntCounter and as Histogram"):
        result.get_accumulator_result("a")
    with pytest.raises(ProgramError, match="'a' has no result"):
        result.get_all_accumulator_results()
    with pytest.raises(ProgramError, match="no accumulator 'c'; there are: a, b"):
        result.get_accumulator_result("c")


def test_a_merge_that_raises_is_an_error_of_that_name_only() -> None:
    results = merged_results([{"a": IntCounter(1)}, {"a": IntCounter("text")}])
    assert "TypeError" in results["a"].reason
