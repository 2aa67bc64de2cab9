"""The oldest and the newest Python, and the oldest Spark, that Penstock says it runs with.

The wheel is installed with all extras. The unit tests are those that the sdist unpacks to.
"""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from environments import ROOT, Environment, Packages, make_environment
from first_program import check_first_program

OLDEST_SPARK = re.findall(r'"pyspark>=([\d.]+)', (ROOT / "pyproject.toml").read_text())[0]
VERSIONS = {f"3.10 with pyspark {OLDEST_SPARK}": ("3.10", OLDEST_SPARK), "3.13": ("3.13", None)}
pytestmark = [
    pytest.mark.full,
    pytest.mark.timeout(1800),
    pytest.mark.xdist_group("packages"),
]


@pytest.fixture(scope="module", params=list(VERSIONS))
def environment(
    packages: Packages, tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest
) -> Iterator[Environment]:
    python, pyspark = VERSIONS[request.param]
    folder = tmp_path_factory.mktemp("versions") / "venv"
    requirement = f"penstock[all,dev] @ {packages.wheel.as_uri()}"
    yield make_environment(folder, python, requirement, pyspark)
    shutil.rmtree(folder)


def test_the_first_program_runs_on_spark(
    environment: Environment, sources: Path, tmp_path: Path
) -> None:
    check_first_program(environment, sources, tmp_path)


def test_unit_tests_pass(environment: Environment, sources: Path) -> None:
    environment.run("python", "-m", "pytest", "tests/unit", "-q", "-x", "-n", "2", cwd=sources)
