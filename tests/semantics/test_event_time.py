"""Event time in whole programs, quiet and under faults: the answer is that of a plain loop."""

from __future__ import annotations

from collections import Counter

import pytest

from penstock.common import Configuration
from penstock.testing import FaultRates, local_environment
from penstock.testing.event_programs import KINDS, EventCase

CASES = 264
FAULTS = FaultRates(
    crash=0.001, crash_soon=0.3, storage_error=0.003, expiry=0.001, slow=0.003, budget=4
)


restored: list[int] = []


def run(case: EventCase, seed: int, faults: FaultRates | bool) -> Counter[object]:
    interval = (10, 30, 200)[seed % 3]
    configuration = Configuration.from_dict({"pipeline.auto-watermark-interval": f"{interval} ms"})
    with local_environment(seed, faults, configuration) as env:
        found = Counter(case.build(env).execute_and_collect())
        restored.append(len(env.simulation.restored))
        return found


@pytest.mark.parametrize("batch", range(12))
def test_the_answer_is_that_of_a_plain_loop(batch: int) -> None:
    for seed in range(batch, CASES, 12):
        case = EventCase.random(seed)
        assert run(case, seed, False) == case.answer(), (seed, case)


@pytest.mark.parametrize("batch", range(12))
def test_faults_change_nothing(batch: int) -> None:
    restored.clear()
    for seed in range(1000 + batch, 1000 + CASES, 12):
        case = EventCase.random(seed)
        assert run(case, seed, FAULTS) == case.answer(), (seed, case)
    assert sum(map(bool, restored)) >= 2, "too few of the jobs went back to a checkpoint"


def test_the_cases_are_of_every_kind() -> None:
    kinds = Counter(EventCase.random(seed).kind for seed in range(CASES))
    assert set(kinds) == set(KINDS) and min(kinds.values()) > CASES / 10
