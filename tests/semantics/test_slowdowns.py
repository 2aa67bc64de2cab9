"""Functions that become slow in the middle of what is under way: in time, and with one result."""

from __future__ import annotations

from typing import Any

import pytest
from planted_bugs import LOST, finds, problem_of
from seed_frame import chunks, verify

from penstock.common.configuration import Configuration
from penstock.runtime.intake import Intake
from penstock.runtime.slice import Slice
from penstock.runtime.step_watch import StepWatch
from penstock.testing import local_environment
from penstock.testing.local_environment import LocalEnvironment
from penstock.testing.slowdowns import SlowdownScenario
from penstock.testing.speed import spend


@pytest.mark.timeout(500)
@pytest.mark.parametrize("seeds", chunks(20, 200))
def test_the_result_does_not_depend_on_how_fast_functions_are(seeds: range) -> None:
    verify("slowdown", seeds)


def test_steps_are_ended_in_the_middle(monkeypatch: pytest.MonkeyPatch) -> None:
    ended, look = [], StepWatch.look

    def counting(self: StepWatch) -> None:
        part = self._slice
        before = 0 if part is None else len(part.back)
        look(self)
        if part is not None and len(part.back) > before:
            ended.append(part)

    monkeypatch.setattr(StepWatch, "look", counting)
    for seed in range(10):
        SlowdownScenario(seed).run()
    assert len(ended) > 20


def records_taken_back_are_forgotten(patch: pytest.MonkeyPatch) -> None:
    taken_back = Intake.take_back

    def forget(self: Intake) -> int:
        self.under_way = Slice([]) if self.under_way.back else self.under_way
        return taken_back(self)

    patch.setattr(Intake, "take_back", forget)


def test_some_seed_finds_the_bug_of_records_taken_back_and_forgotten() -> None:
    finds(records_taken_back_are_forgotten, LOST, problem_of(SlowdownScenario), range(300))


# --- checkpoints while a function is slow -----------------------------------------------------

FAST, SLOW = 3000, 240
_env: list[LocalEnvironment] = []


class Stalls:
    """Fast, until the database behind it stalls."""

    def __call__(self, n: int) -> tuple[int, int]:
        if n >= FAST:
            spend(50)
        return n, _env[-1].simulation.master.progress().completed_checkpoints


@pytest.mark.parametrize("exchange", [True, False])
@pytest.mark.parametrize("seed", range(6))
def test_unaligned_checkpoints_are_on_time(
    seed: int, exchange: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    # With buffers and steps as large as they are on a cluster.
    monkeypatch.setattr(LocalEnvironment, "_finely_cut", lambda self, settings: settings)
    found = run(seed, exchange)
    assert [n for n, _ in found] == list(range(FAST + SLOW))
    # In 12 s there is time for 24 of them, and for less as all that happens takes turns here.
    assert found[-1][1] - found[FAST][1] > 4


def run(seed: int, exchange: bool) -> list[Any]:
    settings = Configuration.from_dict(
        {
            "execution.checkpointing.interval": "500 ms",
            "execution.checkpointing.unaligned.enabled": "true",
        }
    )
    with local_environment(seed, configuration=settings) as env:
        _env.append(env)
        numbers = env.from_collection(range(FAST + SLOW))
        stalling = (numbers.rebalance() if exchange else numbers).map(Stalls())
        return list(stalling.execute_and_collect())
