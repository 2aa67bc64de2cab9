"""What all tests by seeds share: running many, and showing that some seed finds a planted bug.

More seeds than CI has time for:

    PENSTOCK_SEEDS=100000 pytest tests/semantics/test_takeovers.py -n 2
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable

import pytest

from penstock.testing.scenarios import Scenario

_MISTAKES = re.compile("AttributeError|NameError|TypeError|ImportError")
MakeScenario = Callable[[int], Scenario]
Bug = Callable[[pytest.MonkeyPatch], None]


def chunks(seeds: int, size: int = 25) -> list[range]:
    """The seeds of a suite, in pieces that are a test each."""
    seeds = int(os.environ.get("PENSTOCK_SEEDS", seeds))
    return [range(first, min(first + size, seeds)) for first in range(0, seeds, size)]


def name_of(seeds: range) -> str:
    """How a piece is called in the names of tests."""
    return f"{seeds.start}-{seeds.stop - 1}"


def verify(make: MakeScenario, seeds: Iterable[int], kind: str) -> None:
    """Run every seed; the first one that gives a wrong result fails the test."""
    for seed in seeds:
        try:
            make(seed).run().verify()
        except Exception as error:
            pytest.fail(
                f"seed {seed}: {type(error).__name__}: {str(error)[:2000]}\n"
                f"replay it with: python -m penstock.testing {seed} {kind}"
            )


def finds(make: MakeScenario, seeds: int) -> str:
    """What the first seed that goes wrong has found; the test fails if there is none."""
    for seed in range(seeds):
        try:
            found = make(seed).run().problems()
        except Exception as error:
            found = [f"{type(error).__name__}: {error}"]
        if found:
            print(f"seed {seed}: {found[0][:300]}")
            mistakes = _MISTAKES.findall(found[0])
            assert not mistakes, f"the planted bug does not fit the code any more: {found[0]}"
            return found[0]
    pytest.fail(f"{seeds} seeds did not find it")
