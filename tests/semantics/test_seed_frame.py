"""The frame of tests by seeds: which seeds run when, and what a failure says."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from seed_frame import chunks, replayable, verify

from penstock.testing.__main__ import main
from penstock.testing.kinds import KINDS

ROOT = Path(__file__).parents[2]


def shown(few: int, all: int, size: int) -> list[str]:
    """The pieces, those of the full run in brackets."""
    names = {True: "({})", False: "{}"}
    return [names[bool(piece.marks)].format(piece.id) for piece in chunks(few, all, size)]


@pytest.fixture(autouse=True)
def unset(monkeypatch: pytest.MonkeyPatch) -> None:
    for variable in ("PENSTOCK_SEEDS", "PENSTOCK_FRESH_SEED"):
        monkeypatch.delenv(variable, raising=False)


def test_a_few_seeds_run_always_and_the_others_in_the_full_run() -> None:
    assert shown(10, 60, 25) == ["0-9", "(10-34)", "(35-59)"]
    assert shown(30, 30, 25) == ["0-24", "25-29"]
    [piece] = chunks(10, 10, first=1000)
    assert piece.values == (range(1000, 1010),)


def test_more_seeds_by_a_variable(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PENSTOCK_SEEDS", "100")
    assert shown(10, 20, 50) == ["0-9", "(10-59)", "(60-99)"]


def test_fresh_seeds_are_named_alike_in_every_run(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PENSTOCK_FRESH_SEED", "4711")
    assert shown(10, 35, 25) == ["0-9", "(10-34)", "(fresh)"]
    assert chunks(10, 35)[-1].values == (range(4711, 4721),)


def test_every_kind_can_be_replayed_by_the_command_that_a_failure_prints(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for kind in KINDS:
        assert main(["1", kind]) == 0
        assert "all is well" in capsys.readouterr().out
        make = KINDS[kind]
        monkeypatch.setitem(KINDS, kind, lambda seed: 1 / 0)  # type: ignore[arg-type,return-value]
        command = f"replay it with: python -m penstock.testing 1 {kind}$"
        with pytest.raises(pytest.fail.Exception, match=command):
            verify(kind, range(1, 3))
        monkeypatch.setitem(KINDS, kind, make)


def test_another_seed_is_replayed_as_a_fresh_one() -> None:
    here = "tests/semantics/test_seed_frame.py::test_another_seed_is_replayed_as_a_fresh_one"
    command = f"PENSTOCK_FRESH_SEED=7 python -m pytest --all {here} -k fresh$"
    with pytest.raises(pytest.fail.Exception, match=command), replayable(7):
        raise AssertionError("wrong")


def collected(**variables: str) -> str:
    """What a run in CI says before its tests."""
    arguments = ["tests/semantics/test_multipart_commits.py", "--collect-only", "-k", "fresh or no"]
    # The options and variables of the run that this test is part of are not those of a user.
    mine = {name: value for name, value in os.environ.items() if "PYTEST" not in name}
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", *arguments],
        stdout=subprocess.PIPE,
        cwd=ROOT,
        env={**mine, "CI": "1", **variables},
        text=True,
        check=True,
    )
    return done.stdout


def test_ci_begins_at_another_seed_each_time_and_says_how_to_begin_there_again() -> None:
    [line] = [line for line in collected().splitlines() if line.startswith("fresh seeds")]
    seed = line.split()[3].removesuffix(";")
    assert 10**6 <= int(seed) < 10**9
    assert f"PENSTOCK_FRESH_SEED={seed} python -m pytest" in line
    assert line.endswith("--collect-only -k 'fresh or no'")
    assert f"fresh seeds from {seed};" in collected(PENSTOCK_FRESH_SEED=seed)
