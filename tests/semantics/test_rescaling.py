"""Jobs that go on at another parallelism and with other chains: the results are the same.

PENSTOCK_SEEDS=100000 pytest tests/semantics/test_rescaling.py -n 2
"""

from __future__ import annotations

import os
from collections.abc import Callable

import pytest

from penstock.jobmanager import rescaling
from penstock.testing import takeovers
from penstock.testing.rescales import RescaleScenario

SEEDS = int(os.environ.get("PENSTOCK_SEEDS", "200"))
CHUNK = 25


@pytest.fixture(autouse=True)
def quiet(caplog: pytest.LogCaptureFixture) -> None:
    """Failures on purpose need not be logged."""
    caplog.set_level("CRITICAL", logger="penstock")


@pytest.mark.timeout(CHUNK * 20)
@pytest.mark.parametrize("first", range(0, SEEDS, CHUNK))
def test_every_record_counts_once_whatever_the_layout(first: int) -> None:
    for seed in range(first, min(first + CHUNK, SEEDS)):
        try:
            RescaleScenario(seed).run().verify()
        except Exception as error:
            pytest.fail(f"seed {seed}: {type(error).__name__}: {str(error)[:2000]}")


def test_the_seeds_reach_what_they_are_meant_to_reach() -> None:
    scenarios = [RescaleScenario(seed).run() for seed in range(60)]
    restored = [s for s in scenarios if len(s.layouts) > 1 and s.simulation.restored]
    rescaled = [s for s in restored if s.layouts[-1] != s.layouts[-2]]
    assert len(rescaled) > 15, "too few go on from a checkpoint with another layout"


# --- does it find bugs? -----------------------------------------------------------------------


def splits_of_all_for_everyone(patch: pytest.MonkeyPatch) -> None:
    dealt = rescaling._operator

    def doubled(operator, index, vertex):  # type: ignore[no-untyped-def]
        part = dealt(operator, index, vertex)
        splits = tuple(split for each in operator.parts for split in each.splits)
        return rescaling.OperatorSnapshot(part.segments, splits)

    patch.setattr(rescaling, "_operator", doubled)


def keyed_state_of_the_same_index_only(patch: pytest.MonkeyPatch) -> None:
    def narrow(operator, index, vertex):  # type: ignore[no-untyped-def]
        return operator.parts[index % len(operator.parts)]

    patch.setattr(rescaling, "_operator", narrow)


@pytest.mark.parametrize("bug", [splits_of_all_for_everyone, keyed_state_of_the_same_index_only])
def test_some_seed_finds_the_bug(
    bug: Callable[[pytest.MonkeyPatch], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(takeovers, "_MOST_TICKS", 60_000)
    bug(monkeypatch)
    for seed in range(300):
        try:
            found = RescaleScenario(seed).run().problems()
        except Exception as error:
            found = [f"{type(error).__name__}: {error}"]
        if found:
            return
    pytest.fail("no seed found it")
