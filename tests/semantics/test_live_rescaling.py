"""Jobs that change their parallelism while they run, at any moment and among faults."""

from __future__ import annotations

import pytest
from planted_bugs import HANGS, WRONG, Bugs, finds, problem_of
from seed_frame import chunks, verify

from penstock.checkpoint.coordinator import CheckpointCoordinator
from penstock.jobmanager import rescaling
from penstock.jobmanager.live_rescale import LiveRescale
from penstock.runtime.barriers import Barriers
from penstock.testing import live_rescales
from penstock.testing.faults import FaultRates
from penstock.testing.live_rescales import LiveRescaleScenario

MANY_FAULTS = FaultRates(expiry=0.02, manifest_error=0.1, crash=0.002, budget=20)


@pytest.mark.timeout(500)
@pytest.mark.parametrize("seeds", chunks(12, 200))
def test_every_record_counts_once_whatever_changes_meanwhile(seeds: range) -> None:
    verify("live-rescale", seeds)


@pytest.mark.full
def test_the_seeds_reach_what_they_are_meant_to_reach() -> None:
    scenarios = [LiveRescaleScenario(seed) for seed in range(80)]
    for scenario in scenarios:
        scenario.run()
    answers = [answer for scenario in scenarios for answer in scenario.answers]
    reasons = " ".join(str(answer) for answer in answers if answer is not None)
    assert sum(answer is None for answer in answers) > 30, "too few change"
    assert "it went back" in reasons
    assert "simulated: too few cores" in reasons
    assert "checkpoint" in reasons, "none fails at its checkpoint"
    assert sum(bool(scenario.fates) for scenario in scenarios) >= 5, "too few drivers die"


# --- does it find bugs? -----------------------------------------------------------------------

BUGS = Bugs()


@BUGS.shown_by(HANGS)
def a_subtask_that_was_held_never_goes_on(patch: pytest.MonkeyPatch) -> None:
    abort = Barriers.abort

    def forget(self: Barriers, checkpoint: int) -> None:
        suspended = self.suspended
        abort(self, checkpoint)
        self.suspended = suspended

    patch.setattr(Barriers, "abort", forget)


@BUGS.shown_by(HANGS)
def checkpoints_wait_for_subtasks_that_are_gone(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(CheckpointCoordinator, "lay_out", lambda self, subtasks: None)


@BUGS.shown_by(f"{HANGS}|in the layout that it was said to")
def the_way_back_is_forgotten(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(LiveRescale, "way_back", lambda self: self._master.job)


@BUGS.shown_by(WRONG)
def keyed_state_of_the_same_index_only(patch: pytest.MonkeyPatch) -> None:
    def narrow(operator, index, vertex):  # type: ignore[no-untyped-def]
        return operator.parts[index % len(operator.parts)]

    patch.setattr(rescaling, "_operator", narrow)


@pytest.mark.parametrize("name", BUGS)
def test_some_seed_finds_the_bug(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(live_rescales, "MAX_TICKS", 60_000)
    finds(*BUGS[name], problem_of(lambda seed: LiveRescaleScenario(seed, MANY_FAULTS)), range(300))
