"""Fixtures on real Spark, for more than one folder of tests."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from patience import PATIENCE
from pyspark.sql import SparkSession

from penstock.spark.session import session_for

RunDriver = Callable[..., "subprocess.Popen[str]"]


@pytest.fixture(scope="session")
def session() -> Iterator[SparkSession]:
    """The session that Penstock makes when the user has none; one for all tests of a run."""
    session = session_for(None, "penstock tests", {})
    yield session
    session.stop()


@pytest.fixture
def start_driver(tmp_path: Path) -> Iterator[RunDriver]:
    """Start a program in a new Python, for tests that need another session or kill the driver."""
    started: list[subprocess.Popen[str]] = []

    def start(program: str, *args: str) -> subprocess.Popen[str]:
        script = tmp_path / "driver.py"
        script.write_text(program)
        process = subprocess.Popen(
            [sys.executable, str(script), *args],
            env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )
        started.append(process)
        return process

    yield start
    for process in started:
        process.kill()
        process.communicate()


@pytest.fixture
def run_driver(start_driver: RunDriver) -> Callable[..., tuple[str, str]]:
    """Run a program in a new Python to its end; what it wrote to stdout and stderr."""

    def run(program: str, *args: str) -> tuple[str, str]:
        process = start_driver(program, *args)
        out, err = process.communicate(timeout=PATIENCE)
        assert process.returncode == 0, f"driver failed:\n{out}\n{err}"
        return out, err

    return run
