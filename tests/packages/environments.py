"""Virtual environments outside the checkout, made by uv, and what is run in them."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest
from packaging.requirements import Requirement

ROOT = Path(__file__).resolve().parents[2]
LOCK = ROOT / "requirements.lock"
# Spark comes as source code, which takes a minute to build: `make clean` removes what was built.
SPARK_WHEELS = ROOT / "build" / "spark-wheels"


@dataclass(frozen=True)
class Packages:
    """What is uploaded to a package index."""

    wheel: Path
    sdist: Path


@dataclass(frozen=True)
class Environment:
    """A virtual environment that knows nothing of the checkout."""

    folder: Path

    @property
    def python(self) -> Path:
        return self.folder / "bin" / "python"

    def run(self, *command: object, cwd: Path, **variables: str) -> str:
        """What a program of the environment writes to stdout; AssertionError if it fails."""
        done = self.try_to_run(*command, cwd=cwd, **variables)
        assert done.returncode == 0, f"{command}:\n{done.stdout[-8000:]}\n{done.stderr[-4000:]}"
        return done.stdout

    def try_to_run(
        self, program: object, *args: object, cwd: Path, **variables: str
    ) -> subprocess.CompletedProcess[str]:
        command = [str(self.folder / "bin" / str(program)), *map(str, args)]
        return _run(command, cwd, variables)


def make_environment(
    folder: Path, python: str, requirement: str, pyspark: str | None = None
) -> Environment:
    """An environment with this Python, and `requirement` in the versions of the lock file.

    `pyspark` names another version of Spark. The test is skipped, the only reason for which one
    in this folder may be, if the machine does not have this Python and uv cannot load it.
    """
    made = uv("venv", "--python", _of_pyenv(python) or python, folder)
    if made.returncode != 0:
        said = [line for line in made.stderr.splitlines() if line.startswith("error")]
        pytest.skip(f"this machine has no Python {python}: {' '.join(said)}")
    environment = Environment(folder)
    version = environment.run("python", "-c", "import sys; print(sys.version)", cwd=folder).split()
    locked = LOCK.read_text()
    if pyspark is None:
        pyspark = _locked_pyspark(locked, version[0])
    else:
        locked = re.sub(r"(?m)^(pyspark|py4j)==.*\n", "", locked) + f"pyspark=={pyspark}\n"
    _build_spark(pyspark)
    constraints = folder / "constraints.txt"
    constraints.write_text(locked)
    options = ["--python", environment.python, "--constraints", constraints]
    done = uv("pip", "install", *options, "--find-links", SPARK_WHEELS, requirement)
    assert done.returncode == 0, done.stderr
    return environment


def uv(*args: object) -> subprocess.CompletedProcess[str]:
    return _run([sys.executable, "-m", "uv", *map(str, args)], ROOT, {})


def _run(
    command: list[str], cwd: Path, variables: dict[str, str]
) -> subprocess.CompletedProcess[str]:
    # What this process runs with, and the Spark session that it may have made.
    hidden = ("PYTEST_", "PYTHONPATH", "VIRTUAL_ENV", "SPARK_", "PYSPARK_", "PENSTOCK_TESTS_")
    kept = {name: value for name, value in os.environ.items() if not name.startswith(hidden)}
    env = {**kept, **variables}
    return subprocess.run(command, cwd=cwd, env=env, capture_output=True, text=True)


def _of_pyenv(python: str) -> str | None:
    """pyenv keeps most of its Pythons off the PATH."""
    root = Path(os.environ.get("PYENV_ROOT") or Path.home() / ".pyenv")
    found = sorted(root.glob(f"versions/{python}.*/bin/python{python}"))
    return str(found[-1]) if found else None


def _locked_pyspark(locked: str, python: str) -> str:
    for line in re.findall(r"(?m)^pyspark==.*$", locked):
        requirement = Requirement(line)
        marker = requirement.marker
        if marker is None or marker.evaluate({"python_full_version": python}):
            (exact,) = requirement.specifier
            return exact.version
    raise AssertionError(f"{LOCK} has no pyspark for Python {python}")


def _build_spark(version: str) -> None:
    """Let pip build the wheel: it has kept the one that it built for the checkout."""
    if not list(SPARK_WHEELS.glob(f"pyspark-{version}*.whl")):
        command = [sys.executable, "-m", "pip", "wheel", "--no-deps", "--wheel-dir"]
        done = _run([*command, str(SPARK_WHEELS), f"pyspark=={version}"], ROOT, {})
        assert done.returncode == 0, done.stdout + done.stderr
