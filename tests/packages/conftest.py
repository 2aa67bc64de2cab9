"""The packages, built once, and an environment without extras."""

from __future__ import annotations

import os
import shutil
import sys
import tarfile
from collections.abc import Iterator
from pathlib import Path

import pytest

# Tests import the modules beside this file by name.
sys.path.insert(0, str(Path(__file__).parent))

from environments import LOCK, ROOT, Environment, Packages, make_environment, uv

from penstock.spark.java import OLDEST_JAVA, java_version


@pytest.fixture(scope="session")
def packages(tmp_path_factory: pytest.TempPathFactory) -> Packages:
    """The sdist, built from the checkout, and the wheel, built from that sdist."""
    folder = tmp_path_factory.mktemp("packages")
    done = uv("build", "--build-constraints", LOCK, "--out-dir", folder, ROOT)
    assert done.returncode == 0, done.stderr
    (wheel,), (sdist,) = folder.glob("*.whl"), folder.glob("*.tar.gz")
    return Packages(wheel, sdist)


@pytest.fixture(scope="session")
def sources(packages: Packages, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder that the sdist unpacks to."""
    folder = tmp_path_factory.mktemp("sources")
    with tarfile.open(packages.sdist) as archive:
        archive.extractall(folder)
    (unpacked,) = folder.iterdir()
    return unpacked


@pytest.fixture(scope="session")
def bare(packages: Packages, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Environment]:
    """An environment with the wheel and no extra, but for Java where the machine has none."""
    homes = [os.environ[name] + "/bin/java" for name in ["JAVA_HOME"] if name in os.environ]
    has_java = any((java_version(java) or 0) >= OLDEST_JAVA for java in [*homes, "java"])
    extra = "" if has_java else "[java]"
    folder = tmp_path_factory.mktemp("bare") / "venv"
    requirement = f"penstock{extra} @ {packages.wheel.as_uri()}"
    yield make_environment(folder, sys.executable, requirement)
    shutil.rmtree(folder)
