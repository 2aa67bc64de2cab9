"""The jars of a Kafka broker: a pinned list, fetched by Spark's resolver, in the user's cache.

`jars.txt` names every jar with its digest, so a broker is the same one everywhere and a torn or
altered download is noticed. They are fetched once; later runs need no network.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import tempfile
from importlib.resources import files
from pathlib import Path
from typing import NamedTuple

from penstock.errors import PenstockError
from penstock.spark.packages import fetch_jars, own_jars

PACKAGES = (
    "org.apache.kafka:kafka_2.13:4.3.1",
    "org.apache.logging.log4j:log4j-slf4j-impl:2.25.4",
)
"""What the others in the list come with."""


class Jar(NamedTuple):
    """A jar by its coordinates and the SHA-256 of its content."""

    group: str
    artifact: str
    version: str
    digest: str

    @property
    def name(self) -> str:
        return f"{self.artifact}-{self.version}.jar"

    def is_at(self, path: Path) -> bool:
        return path.exists() and hashlib.sha256(path.read_bytes()).hexdigest() == self.digest


def kafka_jars() -> list[Path]:
    """The jars of a broker, fetched into the cache if they are not there."""
    folder = cache_folder() / "kafka"
    folder.mkdir(parents=True, exist_ok=True)
    wanted = pinned_jars()
    if not all(jar.is_at(folder / jar.name) for jar in wanted):
        _fetch(wanted, folder)
    return [folder / jar.name for jar in wanted]


def pinned_jars() -> list[Jar]:
    """The list."""
    lines = files(__package__).joinpath("jars.txt").read_text(encoding="utf-8").splitlines()
    return [Jar(*line.replace(":", " ").split()) for line in lines]


def cache_folder() -> Path:
    """`PENSTOCK_CACHE_DIR`, or `penstock` in the user's cache."""
    named = os.environ.get("PENSTOCK_CACHE_DIR")
    if named:
        return Path(named)
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "penstock"


def _fetch(wanted: list[Jar], folder: Path) -> None:
    with tempfile.TemporaryDirectory(prefix="penstock-jars-") as scratch:
        fetched = fetch_jars(PACKAGES, Path(scratch))
        for jar in wanted:
            found = fetched / f"{jar.group}_{jar.name}"
            if not found.exists():
                # Spark does not fetch what it has itself.
                found = own_jars() / jar.name
            if not jar.is_at(found):
                raise PenstockError(
                    f"a broker for tests needs {jar.group}:{jar.artifact}:{jar.version}, which was "
                    "not found, or not with the content that was expected"
                )
            # Another process may do the same: whoever renames last replaces equal by equal.
            partial = folder / f"{jar.name}.{os.getpid()}.partial"
            shutil.copyfile(found, partial)
            partial.replace(folder / jar.name)
