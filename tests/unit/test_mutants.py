"""`tests/mutants` makes the mistakes that it says, and tells the truth about who noticed."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

TOOL = Path(__file__).parents[1] / "mutants"
sys.path.insert(0, str(TOOL))

from places import mutants_of  # noqa: E402

LIMIT = """
def fits(size):
    return size <= 10
"""
TEST_OF_LIMIT = """
from penstock.limit import fits

def test_a_small_size_fits():
    assert fits(3)
"""


@pytest.mark.parametrize(
    ("source", "mistakes"),
    [
        ("if a:\n    b = c\n", ["if not (a):\n    b = c\n"]),
        ("x = a and b\n", ["x = (a or b)\n"]),
        ("x = a < b == c\n", ["x = (a < b != c)\n", "x = (a <= b == c)\n"]),
        ("x = f(0, True)\n", ["x = f(1, True)\n", "x = f(0, False)\n"]),
        ("f()\n", ["pass\n"]),
        ("a.b = c  # why\n", ["pass  # why\n"]),
        ("x += y\n", ["pass\n"]),
        ("x = min(a, b)\n", ["x = max(a, b)\n"]),
        ("def f():\n    return x\n", ["def f():\n    return None\n"]),
        ("x = '·' if a else b\n", ["x = '·' if not (a) else b\n"]),
        ("def f(a: Literal[0]) -> Literal[1]:\n    return\n", []),
        ("@frozen(True)\nclass A:\n    pass\n", []),
        ("if TYPE_CHECKING:\n    f()\n", []),
    ],
)
def test_the_mistakes_of_a_source(source, mistakes):
    assert [mutant.applied(source) for mutant in mutants_of(source)] == mistakes


@pytest.fixture
def project(tmp_path):
    """A checkout with one module, one test and the tool."""
    shutil.copytree(TOOL, tmp_path / "tests" / "mutants")
    for name, text in {
        "src/penstock/__init__.py": "",
        "src/penstock/limit.py": LIMIT,
        "tests/unit/test_limit.py": TEST_OF_LIMIT,
    }.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    return tmp_path


def try_mutants(project, *options):
    command = [sys.executable, "tests/mutants", "limit.py", "--near", *options]
    return subprocess.run(command, cwd=project, capture_output=True, text=True, check=False)


def test_a_mutant_is_caught_or_survives_and_the_checkout_stays_as_it_was(project):
    done = try_mutants(project)
    assert done.stdout.splitlines() == [
        "caught      0 limit.py:3 return None: tests/unit/test_limit.py::test_a_small_size_fits",
        "SURVIVED    1 limit.py:3 flip the comparison",
        "-    return size <= 10",
        "+    return (size < 10)",
        "again: python tests/mutants limit.py --only 1",
    ]
    assert done.returncode == 1
    assert (project / "src/penstock/limit.py").read_text() == LIMIT


def test_a_test_that_fails_without_a_mutant_is_no_witness(project):
    (project / "tests/unit/test_limit.py").write_text(
        TEST_OF_LIMIT + "\ndef test_broken():\n    assert not fits(3)\n"
    )
    done = try_mutants(project, "--only", "1")
    assert done.stdout.startswith(
        "fails without a mutant: tests/unit/test_limit.py::test_broken\nSURVIVED    1 limit.py:3"
    )
