"""Fixtures on real Spark: one local session for all, and drivers in processes of their own."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from penstock.spark.launcher import SparkLauncher

# Slots and drivers in other processes import the modules beside this file by name.
sys.path.insert(0, str(Path(__file__).parent))

from spark_fixtures import run_driver, session, start_driver

__all__ = ["launcher", "run_driver", "session", "start_driver"]


@pytest.fixture
def launcher(session: SparkSession) -> SparkLauncher:
    return SparkLauncher(session)
