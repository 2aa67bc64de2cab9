"""What all tests by seeds share: running many seeds, and telling how to replay one that fails.

A suite has a few seeds for every run, more for `--all`, and fresh ones for `--all` and CI: others
in each run. The number that the fresh ones begin with is printed, and PENSTOCK_FRESH_SEED sets it.
More seeds than CI has time for:

    PENSTOCK_SEEDS=100000 pytest tests/semantics/test_takeovers.py --all -n 2
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from penstock.testing.kinds import KINDS


def chunks(few: int, all: int, size: int = 25, first: int = 0) -> list[Any]:
    """The seeds of a suite from `first` on, in pieces that are a test each.

    The first `few` seeds run always. The others are `full`, and so are as many fresh ones.
    """
    all = int(os.environ.get("PENSTOCK_SEEDS", all))
    starts = [*range(0, few, size), *range(few, all, size)]
    ends = [*starts[1:], max(few, all)]
    found = []
    for start, end in zip(starts, ends, strict=True):
        seeds = range(first + start, first + end)
        marks = [] if start < few else [pytest.mark.full]
        found.append(pytest.param(seeds, marks=marks, id=f"{seeds.start}-{seeds.stop - 1}"))
    fresh = os.environ.get("PENSTOCK_FRESH_SEED")
    if fresh is not None:
        seeds = range(int(fresh), int(fresh) + few)
        found.append(pytest.param(seeds, marks=pytest.mark.full, id="fresh"))
    return found


@contextmanager
def replayable(seed: int, kind: str | None = None) -> Iterator[None]:
    """What goes wrong inside fails the test, and says how to run this one seed again.

    A scenario of some `kind` is told as a story; any other seed is the first of the fresh ones.
    """
    test = os.environ["PYTEST_CURRENT_TEST"].removesuffix(" (call)").partition("[")[0]
    command = (
        f"PENSTOCK_FRESH_SEED={seed} python -m pytest --all {test} -k fresh"
        if kind is None
        else f"python -m penstock.testing {seed} {kind}"
    )
    try:
        yield
    except Exception as error:
        pytest.fail(
            f"seed {seed}: {type(error).__name__}: {str(error)[:2000]}\nreplay it with: {command}"
        )


def verify(kind: str, seeds: range) -> None:
    """Run every seed; the first one that gives a wrong result fails the test."""
    for seed in seeds:
        with replayable(seed, kind):
            KINDS[kind](seed).run().verify()
