"""Planted bugs: a seed must find each, by the symptom that the bug is known by.

    def splits_are_forgotten(patch): ...

    finds(splits_are_forgotten, LOST, problem_of(Scenario), range(400))

The seed that found a bug is remembered and tried first. Without the bug the same seed, with the
same rates and limits, must go well: so it was the bug that was found. Only when the remembered
seed finds the bug no more, others are tried; the test passes if one of them does, and warns. This
command renews `remembered_seeds.json`, with the quickest of several seeds:

    PENSTOCK_RENEW_SEEDS=1 python -m pytest tests/semantics -k bug --timeout 0
"""

from __future__ import annotations

import json
import os
import re
import time
import warnings
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import pytest

from penstock.jobmanager import job_master, recovery
from penstock.testing.scenarios import Scenario

REMEMBERED = Path(__file__).with_name("remembered_seeds.json")
_MISTAKES = re.compile("AttributeError|NameError|TypeError|ImportError")
_CHOICE = 3
"""Among so many seeds that find a bug the quickest is remembered."""
_FURTHER = 40
"""So many seeds after the first one that found it are tried for a quicker one."""

Bug = Callable[[pytest.MonkeyPatch], None]
Look = Callable[[int], str | None]
"""Runs a seed; says what went wrong, or None."""

# What a bug shows itself by. A seed that goes wrong in another way has not found it.
LOST = r"missing [1-9]\d* records"
TWICE = r"too many [1-9]\d* records"
WRONG = f"{LOST}|{TWICE}"
"""Records are not those of the model: some are missing, or others are there."""
HANGS = "hangs|drivers hang"
DISORDER = "their order is not|where [0-9]+ is due"
LEFT_OVER = "left over|is left and|are left:"
GONE = "no checkpoint is left to restore from"
"""Files are deleted that a checkpoint needs."""


class Bugs(dict[str, tuple[Bug, str]]):
    """The planted bugs of a suite by name, each with the symptom that it must be found by."""

    def shown_by(self, symptom: str) -> Callable[[Bug], Bug]:
        """A decorator: this bug shows itself by `symptom`, a regular expression."""

        def plant(bug: Bug) -> Bug:
            self[bug.__name__] = bug, symptom
            return bug

        return plant


def finds(bug: Bug, symptom: str, look: Look, seeds: Iterable[int]) -> None:
    """Some seed goes wrong because of the bug, by its symptom, and goes well without it."""
    name = os.environ["PYTEST_CURRENT_TEST"].rpartition("/")[2].removesuffix(" (call)")
    remembered = json.loads(REMEMBERED.read_text())
    if os.environ.get("PENSTOCK_RENEW_SEEDS"):
        found = _quickest(bug, symptom, look, seeds)
        # Others may have written meanwhile.
        remembered = {**json.loads(REMEMBERED.read_text()), name: found}
        REMEMBERED.write_text(json.dumps(remembered, indent=1, sort_keys=True) + "\n")
        return
    known = remembered.get(name)
    if known is not None and _found(bug, symptom, look, known):
        return
    found = next((seed for seed in seeds if _found(bug, symptom, look, seed)), None)
    assert found is not None, "no seed found it"
    warnings.warn(
        f"seed {known} does not find {name}, and seed {found} does; renew the remembered seeds: "
        "PENSTOCK_RENEW_SEEDS=1 python -m pytest tests/semantics -k bug --timeout 0",
        stacklevel=2,
    )


def problem_of(make: Callable[[int], Scenario]) -> Look:
    """Looks for the problems of a scenario."""
    return lambda seed: "; ".join(make(seed).run().problems()) or None


def _quickest(bug: Bug, symptom: str, look: Look, seeds: Iterable[int]) -> int:
    choice: list[tuple[float, int]] = []
    for seed in _until_enough(seeds, choice):
        began = time.process_time()
        if _found(bug, symptom, look, seed):
            choice.append((time.process_time() - began, seed))
    assert choice, "no seed found it"
    return min(choice)[1]


def _until_enough(seeds: Iterable[int], choice: list[tuple[float, int]]) -> Iterator[int]:
    further = _FURTHER
    for seed in seeds:
        further -= bool(choice)
        if len(choice) == _CHOICE or not further:
            return
        yield seed


def _found(bug: Bug, symptom: str, look: Look, seed: int) -> bool:
    """Whether the seed shows the symptom with the bug and goes well without it."""
    with pytest.MonkeyPatch.context() as patch:
        bug(patch)
        problem = _problem(look, seed)
    if problem is None:
        return False
    mistakes = _MISTAKES.findall(problem)
    assert not mistakes, f"the planted bug does not fit the code any more: {problem}"
    if not re.search(symptom, problem):
        print(f"seed {seed} shows another symptom: {problem[:300]}")
        return False
    control = _problem(look, seed)
    assert control is None, f"seed {seed} goes wrong without the bug as well: {control}"
    print(f"seed {seed}: {problem[:300]}")
    return True


def _problem(look: Look, seed: int) -> str | None:
    try:
        return look(seed)
    except Exception as error:
        return f"{type(error).__name__}: {error}"


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
