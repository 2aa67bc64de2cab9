"""Planted bugs: a seed must find each. The one that did is remembered and tried first.

Only when that seed finds the bug no more, others are tried; the test passes if one of them does,
and warns. This command renews `remembered_seeds.json`, with the quickest of several seeds:

    PENSTOCK_RENEW_SEEDS=1 python -m pytest tests/semantics -k bug --timeout 0
"""

from __future__ import annotations

import json
import os
import re
import time
import warnings
from collections.abc import Callable, Iterable
from itertools import islice
from pathlib import Path
from typing import Any

import pytest

from penstock.jobmanager import job_master, recovery
from penstock.testing.scenarios import Scenario

REMEMBERED = Path(__file__).with_name("remembered_seeds.json")
_MISTAKES = re.compile("AttributeError|NameError|TypeError|ImportError")
_CHOICE = 3
"""Among so many seeds that find a bug the quickest is remembered."""

Bug = Callable[[pytest.MonkeyPatch], None]


def finds(look: Callable[[int], str | None], seeds: Iterable[int]) -> None:
    """Some seed goes wrong because of the bug; `look` says how, or None for one that does not."""
    bug = os.environ["PYTEST_CURRENT_TEST"].rpartition("/")[2].removesuffix(" (call)")
    remembered = json.loads(REMEMBERED.read_text())
    if os.environ.get("PENSTOCK_RENEW_SEEDS"):
        remembered[bug] = _quickest(look, seeds)
        REMEMBERED.write_text(json.dumps(remembered, indent=1, sort_keys=True) + "\n")
        return
    known = remembered.get(bug)
    if known is not None and _problem(look, known):
        return
    found = next((seed for seed in seeds if _problem(look, seed)), None)
    assert found is not None, "no seed found it"
    warnings.warn(
        f"seed {known} does not find {bug}, and seed {found} does; renew the remembered seeds: "
        "PENSTOCK_RENEW_SEEDS=1 python -m pytest tests/semantics -k bug --timeout 0",
        stacklevel=2,
    )


def problem_of(make: Callable[[int], Scenario]) -> Callable[[int], str | None]:
    """Looks for the problems of a scenario."""
    return lambda seed: next(iter(make(seed).run().problems()), None)


def _quickest(look: Callable[[int], str | None], seeds: Iterable[int]) -> int:
    def timed() -> Iterable[tuple[float, int]]:
        for seed in seeds:
            began = time.process_time()
            if _problem(look, seed):
                yield time.process_time() - began, seed

    choice = list(islice(timed(), _CHOICE))
    assert choice, "no seed found it"
    return min(choice)[1]


def _problem(look: Callable[[int], str | None], seed: int) -> str | None:
    try:
        found = look(seed)
    except Exception as error:
        found = f"{type(error).__name__}: {error}"
    if found:
        print(f"seed {seed}: {found[:300]}")
        mistakes = _MISTAKES.findall(found)
        assert not mistakes, f"the planted bug does not fit the code any more: {found}"
    return found


# --- a bug that more than one suite must find -------------------------------------------------


def recovery_does_not_commit_again(patch: pytest.MonkeyPatch) -> None:
    original = recovery.settle_start

    class NoCommits:
        def __init__(self, commits: Any) -> None:
            self._commits = commits

        def __getattr__(self, name: str) -> Any:
            return getattr(self._commits, name)

        def commit(self, committables: Any) -> None:
            pass

    def settle(job: Any, commits: Any, *args: Any) -> Any:
        return original(job, NoCommits(commits), *args)

    patch.setattr(recovery, "settle_start", settle)
    patch.setattr(job_master, "settle_start", settle)
