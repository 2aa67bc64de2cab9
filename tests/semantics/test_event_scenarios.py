"""Event time while drivers die, are paused and are replaced, on both backends and in any layout."""

from __future__ import annotations

import pytest
from planted_bugs import WRONG, Bugs, finds, problem_of
from seed_frame import chunks, verify

from penstock.jobmanager import rescaling
from penstock.testing import takeovers
from penstock.testing.event_programs import KINDS
from penstock.testing.event_scenarios import EventScenario


@pytest.mark.timeout(500)
@pytest.mark.parametrize("seeds", chunks(20, 300))
def test_every_record_counts_once(seeds: range) -> None:
    verify("event", seeds)


@pytest.mark.full
def test_the_seeds_reach_what_they_are_meant_to_reach() -> None:
    scenarios = [EventScenario(seed) for seed in range(200)]
    for scenario in scenarios:
        scenario.run()
    taken_over = [s for s in scenarios if s.fates and s.simulation.restored]
    assert {s.case.kind for s in taken_over} == set(KINDS), "a kind never goes on elsewhere"
    backends = {s.job.settings.state.backend for s in taken_over}
    assert backends == {"hashmap", "rocksdb"}
    assert any(s.job.settings.changelog_ms for s in taken_over)
    assert any(s.job.checkpoints.overtakes_after_ms is not None for s in taken_over)
    assert any(s.layouts[0] != s.layouts[-1] for s in taken_over)


# --- does it find bugs? -----------------------------------------------------------------------

BUGS = Bugs()


@BUGS.shown_by(WRONG)
def keyed_state_of_the_same_index_only(patch: pytest.MonkeyPatch) -> None:
    def narrow(operator, index, vertex):  # type: ignore[no-untyped-def]
        return operator.parts[index % len(operator.parts)]

    patch.setattr(rescaling, "_operator", narrow)


@pytest.mark.parametrize("name", BUGS)
def test_some_seed_finds_the_bug(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(takeovers, "_MOST_TICKS", 60_000)
    finds(*BUGS[name], problem_of(EventScenario), range(300))
