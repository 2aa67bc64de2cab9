"""Jobs that go on at another parallelism and with other chains: the results are the same."""

from __future__ import annotations

import pytest
from planted_bugs import WRONG, Bugs, finds, problem_of
from seed_frame import chunks, verify

from penstock.jobmanager import rescaling
from penstock.testing import takeovers
from penstock.testing.rescales import RescaleScenario


@pytest.mark.timeout(500)
@pytest.mark.parametrize("seeds", chunks(10, 200))
def test_every_record_counts_once_whatever_the_layout(seeds: range) -> None:
    verify("rescale", seeds)


@pytest.mark.full
def test_the_seeds_reach_what_they_are_meant_to_reach() -> None:
    scenarios = [RescaleScenario(seed).run() for seed in range(60)]
    restored = [s for s in scenarios if len(s.layouts) > 1 and s.simulation.restored]
    rescaled = [s for s in restored if s.layouts[-1] != s.layouts[-2]]
    assert len(rescaled) > 15, "too few go on from a checkpoint with another layout"


# --- does it find bugs? -----------------------------------------------------------------------

BUGS = Bugs()


@BUGS.shown_by(WRONG)
def splits_of_all_for_everyone(patch: pytest.MonkeyPatch) -> None:
    dealt = rescaling._operator

    def doubled(operator, index, vertex):  # type: ignore[no-untyped-def]
        part = dealt(operator, index, vertex)
        splits = tuple(split for each in operator.parts for split in each.splits)
        return rescaling.OperatorSnapshot(part.segments, splits)

    patch.setattr(rescaling, "_operator", doubled)


@BUGS.shown_by(WRONG)
def keyed_state_of_the_same_index_only(patch: pytest.MonkeyPatch) -> None:
    def narrow(operator, index, vertex):  # type: ignore[no-untyped-def]
        return operator.parts[index % len(operator.parts)]

    patch.setattr(rescaling, "_operator", narrow)


@pytest.mark.parametrize("name", BUGS)
def test_some_seed_finds_the_bug(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(takeovers, "_MOST_TICKS", 60_000)
    finds(*BUGS[name], problem_of(RescaleScenario), range(300))
