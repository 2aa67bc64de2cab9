"""Programs that are changed while they are stopped, on the other state backend each time."""

from __future__ import annotations

import pytest
from seed_frame import chunks, verify

from penstock.testing.changes import ChangeScenario


@pytest.mark.timeout(500)
@pytest.mark.parametrize("seeds", chunks(10, 150))
def test_the_results_are_those_of_a_program_that_was_never_changed(seeds: range) -> None:
    verify("change", seeds)


@pytest.mark.full
def test_the_seeds_reach_what_they_are_meant_to_reach() -> None:
    scenarios = [ChangeScenario(seed) for seed in range(60)]
    for scenario in scenarios:
        scenario.run()
    changed = [s for s in scenarios if any(s.versions) and s.simulation.restored]
    assert len(changed) > 20, "too few go on with another program"
    assert any(len(s.versions) > 1 and s.versions[-1] < s.versions[-2] for s in scenarios)
