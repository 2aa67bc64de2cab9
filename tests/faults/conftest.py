"""Fixtures on real Spark, the same as those of tests/spark."""

from __future__ import annotations

import sys
from pathlib import Path

# What jobs are made of lies there, and slots import it by name.
sys.path.insert(0, str(Path(__file__).parents[1] / "spark"))

from spark_fixtures import run_driver, session, start_driver

__all__ = ["run_driver", "session", "start_driver"]
