"""Drivers that take a job over from others that are dead, paused, or still at work.

PENSTOCK_SEEDS=100000 pytest tests/semantics/test_takeovers.py -n 2
"""

from __future__ import annotations

import os

import pytest

from penstock.testing.takeovers import Fate, TakeoverScenario

SEEDS = int(os.environ.get("PENSTOCK_SEEDS", "400"))
CHUNK = 25


@pytest.fixture(autouse=True)
def quiet(caplog: pytest.LogCaptureFixture) -> None:
    """Failures on purpose need not be logged."""
    caplog.set_level("CRITICAL", logger="penstock")


@pytest.mark.timeout(CHUNK * 20)
@pytest.mark.parametrize("first", range(0, SEEDS, CHUNK))
def test_whoever_comes_last_finishes_the_job(first: int) -> None:
    for seed in range(first, min(first + CHUNK, SEEDS)):
        try:
            TakeoverScenario(seed).run().verify()
        except Exception as error:
            pytest.fail(f"seed {seed}: {type(error).__name__}: {str(error)[:2000]}")


def test_the_seeds_reach_what_they_are_meant_to_reach() -> None:
    scenarios = [TakeoverScenario(seed).run() for seed in range(60)]
    taken_over = [scenario for scenario in scenarios if scenario.fates]
    assert len(taken_over) > 30
    for fate in Fate:
        assert sum(fate in scenario.fates for scenario in scenarios) >= 8
    restored = [scenario for scenario in taken_over if scenario.simulation.restored]
    assert len(restored) > 15, "too few go on from a checkpoint"
