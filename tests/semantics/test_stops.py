"""Jobs that are stopped with a savepoint and go on from it, at any moment and among faults.

PENSTOCK_SEEDS=100000 pytest tests/semantics/test_stops.py -n 2
"""

from __future__ import annotations

import os
from collections.abc import Callable

import pytest

from penstock.jobmanager.checkpoints import Checkpoints
from penstock.runtime.operators import RuntimeKeyedFunction
from penstock.testing import stops
from penstock.testing.stops import StopScenario

SEEDS = int(os.environ.get("PENSTOCK_SEEDS", "200"))
CHUNK = 25


@pytest.fixture(autouse=True)
def quiet(caplog: pytest.LogCaptureFixture) -> None:
    """Failures on purpose need not be logged."""
    caplog.set_level("CRITICAL", logger="penstock")


@pytest.mark.timeout(CHUNK * 20)
@pytest.mark.parametrize("first", range(0, SEEDS, CHUNK))
def test_the_next_job_finishes_what_the_first_began(first: int) -> None:
    for seed in range(first, min(first + CHUNK, SEEDS)):
        try:
            StopScenario(seed).run().verify()
        except Exception as error:
            pytest.fail(f"seed {seed}: {type(error).__name__}: {str(error)[:2000]}")


def test_the_seeds_reach_what_they_are_meant_to_reach() -> None:
    scenarios = [StopScenario(seed) for seed in range(60)]
    for scenario in scenarios:
        scenario.run()
    assert sum(bool(scenario.paths) for scenario in scenarios) > 25
    assert sum(len(scenario.paths) > 1 for scenario in scenarios) > 5
    assert sum(bool(scenario.taken) for scenario in scenarios) > 20


# --- does it find bugs? -----------------------------------------------------------------------


def a_stop_commits_nothing(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Checkpoints, "_commit", lambda self, final: self._done() if final else None)


def a_savepoint_is_not_full(patch: pytest.MonkeyPatch) -> None:
    cut = RuntimeKeyedFunction.cut
    patch.setattr(RuntimeKeyedFunction, "cut", lambda self, c, full=False: cut(self, c))


@pytest.mark.parametrize(
    "bug",
    [a_stop_commits_nothing, a_savepoint_is_not_full],
)
def test_some_seed_finds_the_bug(
    bug: Callable[[pytest.MonkeyPatch], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(stops, "MAX_TICKS", 60_000)
    bug(monkeypatch)
    for seed in range(300):
        try:
            found = StopScenario(seed).run().problems()
        except Exception as error:
            found = [f"{type(error).__name__}: {error}"]
        if found:
            print(f"seed {seed}: {found[0][:300]}")
            return
    pytest.fail("no seed found it")
