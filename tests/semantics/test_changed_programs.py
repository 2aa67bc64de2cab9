"""Programs that are changed while they are stopped, on the other state backend each time.

PENSTOCK_SEEDS=100000 pytest tests/semantics/test_changed_programs.py -n 2
"""

from __future__ import annotations

import os

import pytest

from penstock.testing.changes import ChangeScenario

SEEDS = int(os.environ.get("PENSTOCK_SEEDS", "100"))
CHUNK = 25


@pytest.fixture(autouse=True)
def quiet(caplog: pytest.LogCaptureFixture) -> None:
    """Failures on purpose need not be logged."""
    caplog.set_level("CRITICAL", logger="penstock")


@pytest.mark.timeout(CHUNK * 20)
@pytest.mark.parametrize("first", range(0, SEEDS, CHUNK))
def test_the_results_are_those_of_a_program_that_was_never_changed(first: int) -> None:
    for seed in range(first, min(first + CHUNK, SEEDS)):
        try:
            ChangeScenario(seed).run().verify()
        except Exception as error:
            pytest.fail(f"seed {seed}: {type(error).__name__}: {str(error)[:2000]}")


def test_the_seeds_reach_what_they_are_meant_to_reach() -> None:
    scenarios = [ChangeScenario(seed) for seed in range(60)]
    for scenario in scenarios:
        scenario.run()
    changed = [s for s in scenarios if any(s.versions) and s.simulation.restored]
    assert len(changed) > 20, "too few go on with another program"
    assert any(len(s.versions) > 1 and s.versions[-1] < s.versions[-2] for s in scenarios)
