"""The jars of a Kafka broker: a pinned list, from Maven Central, kept in the user's cache.

`jars.txt` names every jar with its digest, so a broker is the same one everywhere and a torn or
altered download is noticed. They are fetched once; later runs need no network.
"""

from __future__ import annotations

import hashlib
import os
import urllib.error
import urllib.request
from concurrent.futures import ThreadPoolExecutor
from importlib.resources import files
from pathlib import Path

from penstock.errors import PenstockError

REPOSITORY = "https://maven.example/maven2"
"""Where the jars come from; `PENSTOCK_MAVEN_REPOSITORY` names a mirror instead."""


def kafka_jars() -> list[Path]:
    """The jars of a broker, fetched into the cache if they are not there."""
    folder = cache_folder() / "kafka"
    folder.mkdir(parents=True, exist_ok=True)
    lines = files(__package__).joinpath("jars.txt").read_text(encoding="utf-8").splitlines()
    with ThreadPoolExecutor(4) as threads:
        return list(threads.map(lambda line: _jar(folder, *line.split()), lines))


def cache_folder() -> Path:
    """`PENSTOCK_CACHE_DIR`, or `penstock` in the user's cache."""
    named = os.environ.get("PENSTOCK_CACHE_DIR")
    if named:
        return Path(named)
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "penstock"


def _jar(folder: Path, coordinates: str, digest: str) -> Path:
    group, artifact, version = coordinates.split(":")
    name = f"{artifact}-{version}.jar"
    path = folder / name
    if path.exists() and _digest(path.read_bytes()) == digest:
        return path
    repository = os.environ.get("PENSTOCK_MAVEN_REPOSITORY", REPOSITORY)
    url = f"{repository}/{group.replace('.', '/')}/{artifact}/{version}/{name}"
    data = _fetch(url)
    if _digest(data) != digest:
        raise PenstockError(f"{url} is not the file that was expected: its SHA-256 differs")
    # Another process may fetch the same: whoever renames last replaces equal by equal.
    partial = folder / f"{name}.{os.getpid()}.partial"
    partial.write_bytes(data)
    partial.replace(path)
    return path


def _fetch(url: str, tries: int = 3) -> bytes:
    for left in reversed(range(tries)):
        try:
            with urllib.request.urlopen(url, timeout=60) as answer:
                return bytes(answer.read())
        except (urllib.error.URLError, OSError) as error:
            if not left:
                raise PenstockError(
                    f"a broker for tests needs {url}, which cannot be fetched: {error}; "
                    "PENSTOCK_MAVEN_REPOSITORY names another repository"
                ) from error
    raise AssertionError("unreachable")


def _digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()
