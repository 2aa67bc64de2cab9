"""JARs that a PyFlink program names: for what is built in here, none is needed.

>>> built_in("file:///opt/lib/flink-sql-connector-kafka-3.2.0-1.19.jar")
'Kafka'
>>> built_in("/opt/lib/my-functions.jar") is None
True
"""

from __future__ import annotations

import logging
import re
from collections.abc import Iterable

from penstock.errors import JavaOnlyError

log = logging.getLogger(__name__)

_BUILT_IN = {
    "Kafka": r"kafka",
    "JDBC": r"jdbc|postgresql|sqlite",
    "files": r"connector-files|file-sink|flink-(sql-)?(csv|json|parquet)|parquet-",
    "S3": r"flink-s3-fs|hadoop-aws|aws-java-sdk",
}
_said: set[str] = set()


def built_in(jar: str) -> str | None:
    """Which connector that is here anyway a JAR is for; None: another."""
    name = jar.rstrip("/").rpartition("/")[2].lower()
    return next((what for what, text in _BUILT_IN.items() if re.search(text, name)), None)


def accept_jars(asked_by: str, jars: Iterable[str]) -> None:
    """Say once that JARs of built-in connectors are not needed; JavaOnlyError for others."""
    for jar in jars:
        what = built_in(jar)
        if what is None:
            raise JavaOnlyError(
                f"{asked_by}: {jar}: there is no Java in the path of a record; write in Python "
                "what the JAR does, or leave it out if nothing of it is used"
            )
        if what not in _said:
            _said.add(what)
            log.warning("%s: no JAR is needed for %s, which is built in: %s", asked_by, what, jar)
