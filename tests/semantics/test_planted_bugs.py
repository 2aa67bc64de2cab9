"""A planted bug is found by the seed that is remembered, or else by a search that says so."""

from __future__ import annotations

import json
import re
import warnings
from pathlib import Path

import planted_bugs
import pytest
from planted_bugs import finds

HERE = Path(__file__).parent


@pytest.fixture
def remembered(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty table."""
    monkeypatch.delenv("PENSTOCK_RENEW_SEEDS", raising=False)
    path = tmp_path / "remembered_seeds.json"
    path.write_text("{}")
    monkeypatch.setattr(planted_bugs, "REMEMBERED", path)
    return path


class Engine:
    """What is under test."""

    broken = False


def bug(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Engine, "broken", True)


class Looks:
    """The bug shows from a certain seed on, as `problem`."""

    def __init__(self, first: int, problem: str = "2 are missing") -> None:
        self.first = first
        self.problem = problem
        self.seeds: list[int] = []

    def __call__(self, seed: int) -> str | None:
        if not Engine.broken:
            return None
        self.seeds.append(seed)
        return self.problem if seed >= self.first else None


def test_the_remembered_seed_is_the_only_one_that_runs(remembered: Path) -> None:
    name = "test_planted_bugs.py::test_the_remembered_seed_is_the_only_one_that_runs"
    remembered.write_text(json.dumps({name: 7}))
    look = Looks(3)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        finds(bug, "missing", look, range(10))
    assert look.seeds == [7]


def test_a_search_says_which_seed_to_remember(remembered: Path) -> None:
    name = "test_planted_bugs.py::test_a_search_says_which_seed_to_remember"
    remembered.write_text(json.dumps({name: 2}))
    with pytest.warns(UserWarning, match="seed 2 does not find .* seed 3 does; renew"):
        finds(bug, "missing", Looks(3), range(10))


def test_a_bug_that_no_seed_finds_fails_the_test(remembered: Path) -> None:
    with pytest.raises(AssertionError, match="no seed found it"):
        finds(bug, "missing", Looks(11), range(10))


def test_the_table_is_renewed(remembered: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PENSTOCK_RENEW_SEEDS", "1")
    finds(bug, "missing", Looks(3), range(10))
    [(name, seed)] = json.loads(remembered.read_text()).items()
    assert name == "test_planted_bugs.py::test_the_table_is_renewed"
    assert seed in (3, 4, 5)


def test_another_symptom_is_not_that_of_the_bug(remembered: Path) -> None:
    with pytest.raises(AssertionError, match="no seed found it"):
        finds(bug, "missing", Looks(3, "it hangs"), range(10))


def test_a_seed_that_goes_wrong_without_the_bug_finds_nothing(remembered: Path) -> None:
    with pytest.raises(AssertionError, match="seed 0 goes wrong without the bug as well"):
        finds(bug, "missing", lambda seed: "2 are missing", range(10))


def test_a_bug_that_does_not_fit_the_code_any_more_is_not_found(remembered: Path) -> None:
    def look(seed: int) -> str:
        raise AttributeError("no such method")

    with pytest.raises(AssertionError, match="does not fit"):
        finds(bug, "missing", look, range(10))


def test_every_remembered_seed_belongs_to_a_bug() -> None:
    for name in json.loads(planted_bugs.REMEMBERED.read_text()):
        file, test, bug = re.fullmatch(r"(.+)::(\w+)(?:\[(\w+)\])?", name).groups()  # type: ignore[union-attr]
        text = (HERE / file).read_text()
        assert f"def {test}(" in text and (bug is None or bug in text), name
