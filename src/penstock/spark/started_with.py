"""What a program was started with: the settings of spark-submit, else of spark-defaults.conf.

PySpark reads both only when there is a JVM. One that spark-submit made is there already, so it can
be asked. Otherwise the JVM is ours to start, and what to start it with depends on the master, so
the file is read here.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from pathlib import Path

from pyspark import SparkConf, SparkContext
from pyspark.find_spark_home import _find_spark_home


def started_with(environ: Mapping[str, str] = os.environ) -> dict[str, str]:
    """The settings that are there before the program says anything."""
    if "PYSPARK_GATEWAY_PORT" in environ:
        SparkContext._ensure_initialized()
        return dict(SparkConf().getAll())
    folder = environ.get("SPARK_CONF_DIR") or Path(_find_spark_home()) / "conf"
    return read_properties(Path(folder) / "spark-defaults.conf")


def read_properties(file: Path) -> dict[str, str]:
    """What a file like spark-defaults.conf says: `key value` or `key=value`, and comments."""
    try:
        lines = file.read_text(encoding="utf-8").splitlines()
    except OSError:
        return {}
    found = {}
    for line in lines:
        text = line.strip()
        if text and text[0] not in "#!":
            key, *value = re.split(r"\s*[=:\s]\s*", text, maxsplit=1)
            found[key] = value[0] if value else ""
    return {key: value for key, value in found.items() if key.startswith("spark.")}
