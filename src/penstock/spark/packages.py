"""Jars by their Maven coordinates, fetched by Spark's own resolver (`spark.jars.packages`).

So whatever repositories a Spark installation is set up with are used, and no other client is
needed. What belongs to Spark itself, such as Scala's library, is not fetched: it is in `own_jars`.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from penstock.errors import SparkLaunchError
from penstock.spark.java import ensure_java


def fetch_jars(coordinates: Sequence[str], folder: Path) -> Path:
    """Fetch packages and all they need; the folder with `GROUP_ARTIFACT-VERSION.jar` of each."""
    ensure_java()
    command = [sys.executable, "-m", __name__, ",".join(coordinates), str(folder)]
    # A session of its own: packages are resolved when one is made, and this process may have one.
    ended = subprocess.run(command, capture_output=True, text=True, check=False)
    if ended.returncode != 0:
        reason = (ended.stderr.strip().splitlines() or ["no reason was given"])[-1]
        raise SparkLaunchError(f"Spark cannot fetch {', '.join(coordinates)}: {reason}")
    return folder / "jars"


def own_jars() -> Path:
    """The folder of the jars that come with Spark."""
    import pyspark

    return Path(pyspark.__file__).parent / "jars"


def _main(packages: str, folder: str) -> None:
    from pyspark.sql import SparkSession

    builder = SparkSession.Builder().master("local[1]").config("spark.ui.enabled", "false")
    builder.config("spark.jars.packages", packages).config("spark.jars.ivy", folder)
    builder.getOrCreate().stop()


if __name__ == "__main__":
    _main(*sys.argv[1:])
