"""Jobs that are stopped with a savepoint and go on from it, at any moment and among faults."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from planted_bugs import LOST, WRONG, Bugs, finds, problem_of
from seed_frame import chunks, verify

from penstock.jobmanager.completion import Completion
from penstock.runtime.keyed_operator import RuntimeKeyedFunction
from penstock.runtime.operator_cut import OperatorCut
from penstock.testing import stops
from penstock.testing.stops import StopScenario


@pytest.mark.timeout(500)
@pytest.mark.parametrize("seeds", chunks(10, 200))
def test_the_next_job_finishes_what_the_first_began(seeds: range) -> None:
    verify("stop", seeds)


@pytest.mark.full
def test_the_seeds_reach_what_they_are_meant_to_reach() -> None:
    scenarios = [StopScenario(seed) for seed in range(60)]
    for scenario in scenarios:
        scenario.run()
    assert sum(bool(scenario.paths) for scenario in scenarios) > 25
    assert sum(len(scenario.paths) > 1 for scenario in scenarios) > 5
    assert sum(bool(scenario.taken) for scenario in scenarios) > 20


# --- does it find bugs? -----------------------------------------------------------------------

BUGS = Bugs()


@BUGS.shown_by(LOST)
def a_stop_commits_nothing(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Completion, "commit", lambda self, settled, mark=None: settled())


@BUGS.shown_by(WRONG)
def a_savepoint_is_not_full(patch: pytest.MonkeyPatch) -> None:
    original = RuntimeKeyedFunction.cut

    def cut(self: RuntimeKeyedFunction, *args: Any, **more: Any) -> OperatorCut:
        return replace(original(self, *args, **more), whole=None)

    patch.setattr(RuntimeKeyedFunction, "cut", cut)


@pytest.mark.parametrize("name", BUGS)
def test_some_seed_finds_the_bug(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stops, "MAX_TICKS", 60_000)
    finds(*BUGS[name], problem_of(StopScenario), range(300))
