"""Fixtures on real Spark: one local session for all, and drivers in processes of their own."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from penstock.spark.launcher import SparkLauncher
from penstock.spark.session import session_for

# Slots and drivers in other processes import the modules beside this file by name.
sys.path.insert(0, str(Path(__file__).parent))

from drivers import run_driver, start_driver

__all__ = ["launcher", "run_driver", "session", "start_driver"]


@pytest.fixture(scope="session")
def session() -> Iterator[SparkSession]:
    """The session that Penstock makes when the user has none."""
    session = session_for(None, "penstock tests", {})
    yield session
    session.stop()


@pytest.fixture
def launcher(session: SparkSession) -> SparkLauncher:
    return SparkLauncher(session)
