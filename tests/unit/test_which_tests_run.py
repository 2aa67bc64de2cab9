"""What `make test` and `make test-all` run, and that a skip does not pass for a proof."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

TESTS = Path(__file__).parents[1]

SOME_TESTS = """
import pytest

def test_small(): pass

@pytest.mark.full("kills")
def test_kills(): pass

@pytest.mark.full
def test_other(): pass

@pytest.mark.long
def test_repeated(): pass
"""

GROUPED = """
import os
import time
import pytest

@pytest.mark.xdist_group("one")
@pytest.mark.parametrize("n", range(4))
def test_grouped(n):
    time.sleep(0.1)
    print("ran in", os.environ["PYTEST_XDIST_WORKER"])

def test_alone(): pass
"""

SKIPPING = """
import pytest

def test_without_its_server(): pytest.skip("no server")
"""

ALLOWED = """
import pytest

def test_an_older_python(): pytest.skip("this machine has no Python 3.10")
"""


def run(folder: Path, content: str, *options: str, **variables: str) -> list[str]:
    """The lines of a run of these tests."""
    shutil.copy(TESTS / "conftest.py", folder)
    (folder / "test_some.py").write_text(content)
    markers = "markers=full: more\n long: repetition"
    command = [sys.executable, "-m", "pytest", "-vrA", "-p", "no:cacheprovider", "-o", markers]
    environment = {name: value for name, value in os.environ.items() if name != "CI"}
    ended = subprocess.run(
        [*command, "--rootdir", str(folder), "-c", os.devnull, *(options or (".",))],
        cwd=folder,
        env={**environment, "PYTHONPATH": str(TESTS), **variables},
        capture_output=True,
        text=True,
        check=False,
    )
    return [*ended.stdout.splitlines(), *ended.stderr.splitlines()]


def passed(lines: list[str]) -> list[str]:
    return sorted(line.rpartition("::")[2] for line in lines if line.startswith("PASSED "))


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        (".", ["test_small"]),
        (". --rest", ["test_kills", "test_other"]),
        (". --all", ["test_kills", "test_other", "test_small"]),
        (". --rest --long", ["test_kills", "test_other", "test_repeated"]),
        ("test_some.py", ["test_kills", "test_other", "test_repeated", "test_small"]),
    ],
    ids=str,
)
def test_options_say_which(tmp_path: Path, options: str, expected: list[str]) -> None:
    assert passed(run(tmp_path, SOME_TESTS, *options.split())) == expected


@pytest.mark.parametrize("lanes", ["0", "2"])
def test_what_did_not_run_is_said(tmp_path: Path, lanes: str) -> None:
    lines = run(tmp_path, SOME_TESTS, ".", "-n", lanes)
    assert "not run here: 2 tests (kills, others): make test-all" in lines
    assert not [line for line in run(tmp_path, SOME_TESTS, ".", "--all") if "not run" in line]


def test_a_group_runs_in_one_process(tmp_path: Path) -> None:
    """Tests that share a server, or must not run at the same time, are a group."""
    lines = run(tmp_path, GROUPED, ".", "-n", "2", "--dist", "loadgroup")
    workers = [line for line in lines if line.startswith("ran in ")]
    assert len(workers) == 4 and len(set(workers)) == 1


def test_a_skip_is_a_failure_in_ci(tmp_path: Path) -> None:
    assert any(line.startswith("SKIPPED") for line in run(tmp_path, SKIPPING))
    lines = run(tmp_path, SKIPPING, CI="true")
    assert any("was skipped, so it proves nothing: no server" in line for line in lines), lines
    assert any("1 failed" in line for line in lines)
    assert any(line.startswith("SKIPPED") for line in run(tmp_path, ALLOWED, CI="true"))
