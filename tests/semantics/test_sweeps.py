"""After the grace period exactly that is left which a retained checkpoint refers to."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from planted_bugs import GONE, LEFT_OVER, WRONG, Bugs, finds, problem_of
from seed_frame import chunks, verify

from penstock.checkpoint import orphans, sweeping
from penstock.checkpoint.segment_names import SegmentName
from penstock.testing import simulator
from penstock.testing.faults import FaultRates
from penstock.testing.scenarios import Scenario
from penstock.testing.sweeps import SweepScenario

RESTORES = FaultRates(crash_soon=0.2, crash=0.001, expiry=0.003, budget=12)


@pytest.mark.timeout(500)
@pytest.mark.parametrize("seeds", chunks(10, 150))
def test_nothing_is_left_and_a_restore_is_whole(seeds: range) -> None:
    verify("sweep", seeds)


@pytest.mark.full
def test_the_seeds_reach_what_they_are_meant_to_reach() -> None:
    scenarios = [SweepScenario(seed).run() for seed in range(50)]
    assert sum(scenario.swept > 0 for scenario in scenarios) > 10, "too few leave anything behind"
    restored = [s for s in scenarios if s.swept and s.simulation.restored]
    assert len(restored) > 8, "too few go on from a checkpoint after a sweep"


# --- does it find bugs? -----------------------------------------------------------------------

TOO_MUCH = Bugs()


@TOO_MUCH.shown_by(WRONG)
def what_is_referred_to_is_swept(patch: pytest.MonkeyPatch) -> None:
    original = orphans.orphans

    def blind(contents: Any, live: Any, retained: int) -> Any:
        nothing = dict.fromkeys(contents.checkpoints, frozenset())
        return original(replace(contents, checkpoints=nothing), live, retained)

    patch.setattr(sweeping, "orphans", blind)


@TOO_MUCH.shown_by(WRONG)
def checkpoints_under_way_are_swept(patch: pytest.MonkeyPatch) -> None:
    original = orphans.orphans

    def hasty(contents: Any, live: Any, retained: int) -> Any:
        return original(contents, replace(live, undecided=1 << 62), retained)

    patch.setattr(sweeping, "orphans", hasty)


@TOO_MUCH.shown_by(WRONG)
def merged_segments_are_swept(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(SegmentName, "is_merged", property(lambda name: False))


@TOO_MUCH.shown_by(GONE)
def what_slots_build_upon_is_swept(patch: pytest.MonkeyPatch) -> None:
    original = orphans.orphans

    def greedy(contents: Any, live: Any, retained: int) -> Any:
        return original(contents, replace(live, needed=1 << 62, known=frozenset()), 0)

    patch.setattr(sweeping, "orphans", greedy)


@pytest.mark.parametrize("name", TOO_MUCH)
def test_some_seed_finds_the_bug_that_sweeps_too_much(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(simulator, "MAX_TICKS", 20_000)
    finds(*TOO_MUCH[name], problem_of(lambda seed: Scenario(seed, RESTORES)), range(400))


TOO_LITTLE = Bugs()


@TOO_LITTLE.shown_by(LEFT_OVER)
def orphans_are_left(patch: pytest.MonkeyPatch) -> None:
    parse = SegmentName.parse

    def some(text: str) -> Any:
        return parse(text) if text.endswith("-merged") else None

    patch.setattr(SegmentName, "parse", staticmethod(some))


@TOO_LITTLE.shown_by(LEFT_OVER)
def tombstones_are_left(patch: pytest.MonkeyPatch) -> None:
    original = orphans.orphans

    def careful(contents: Any, live: Any, retained: int) -> Any:
        return original(replace(contents, others=frozenset()), live, retained)

    patch.setattr(sweeping, "orphans", careful)


@pytest.mark.parametrize("name", TOO_LITTLE)
def test_some_seed_finds_the_bug_that_sweeps_too_little(name: str) -> None:
    finds(*TOO_LITTLE[name], problem_of(SweepScenario), range(200))
